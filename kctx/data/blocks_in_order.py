"""Blocks made ahead by threads and handed out in order."""

import collections
import itertools
from concurrent.futures import ThreadPoolExecutor


def next_address(blocks, epoch, position):
    """(epoch, position) of the block after this one."""
    position += 1
    return (epoch, position) if position < blocks.num_blocks(epoch) else (epoch + 1, 0)


def addresses(blocks, epochs, epoch, position):
    """Every address from one on, endlessly or up to a number of epochs."""
    while epochs is None or epoch < epochs:
        yield epoch, position
        epoch, position = next_address(blocks, epoch, position)


def blocks_in_order(blocks, epochs, workers, epoch, position, made=None):
    """Yields (epoch, position, block) from an address on.

    Args:
        blocks: `CorpusBlocks` or `RecordBlocks`.
        epochs: int, or None for endless.
        workers: int, threads that make blocks, and how many are made ahead.
        epoch, position: ints, the first address.
        made: the block of the first address, if it is there already.
    """
    if made is not None:
        yield epoch, position, made
        epoch, position = next_address(blocks, epoch, position)
    waiting = addresses(blocks, epochs, epoch, position)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="kctx-data")
    try:
        ahead = collections.deque()

        def submit(count):
            for address in itertools.islice(waiting, count):
                ahead.append((*address, pool.submit(blocks.block, *address)))

        submit(workers)
        while ahead:
            epoch, position, future = ahead.popleft()
            block = future.result()
            del future
            submit(1)
            yield epoch, position, block
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
