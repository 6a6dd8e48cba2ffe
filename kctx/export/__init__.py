"""SavedModels that take raw text and give named answers, in the layout of TensorFlow Serving."""

from kctx.export.writing import ExportError, saved_model

__all__ = ["ExportError", "saved_model"]
