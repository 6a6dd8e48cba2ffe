"""The command line `kctx`: predict, embed, export, convert, info.

It lies beside the package, not in it, since whatever is imported from `kctx` loads TensorFlow and
Keras first: `kctx --help` is there at once, and a command loads them when it runs.
"""
