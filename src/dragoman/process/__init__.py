"""Child processes that never outlive their owner.

    process = await spawn(argv, env=…, cwd=…, stdin=…, stdout=…, stderr=…)
    await process.wait()
    await process.stop()

On Linux a keeper process outside this one ends the whole tree, however the owner ends
(`contained`); elsewhere process groups do what they can (`spawn`). Nothing here knows what the
programs are for, or reads and writes their streams.

Use `spawn.spawn`, `child.Process`, `child.ExitStatus` and `zygote_client.warm_up`. Nothing is
imported here, so that `warm_up` can start the zygote while asyncio and the rest are being imported.
"""
