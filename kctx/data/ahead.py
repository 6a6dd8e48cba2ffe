"""An iterator that works ahead in a thread."""

import queue
import threading

_END = object()


def ahead(iterator, number):
    """Yields what `iterator` does, which is asked for up to `number` items ahead in a thread.

    An exception of the iterator is raised here. The thread ends when this generator is closed.
    """
    items, stopped = queue.Queue(number), threading.Event()

    def put(item):
        while not stopped.is_set():
            try:
                return items.put(item, timeout=0.1)
            except queue.Full:
                continue

    def work():
        try:
            for item in iterator:
                put((item, None))
                if stopped.is_set():
                    return
            put((_END, None))
        except BaseException as error:
            put((_END, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            item, error = items.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stopped.set()
