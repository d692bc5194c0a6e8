"""Runs the package of Python. `seal` computes tests/vectors/seal.csv again, `unseal` opens texts, `time` prints how many nanoseconds an ID of a full
buffer takes, `many` prints a million IDs of eight threads, and `talk` does what the lines of its input say: `next N PAUSE` gets N
IDs with pauses of so many milliseconds, and prints each with the time before it was asked for, in microseconds; `take N`, `try`,
`close`; `longest` prints how many microseconds the longest request took. An error ends what a line says. With AIO, it uses
AsyncIds, and tasks instead of threads."""

# ruff: noqa: BLE001, E501

import asyncio
import inspect
import os
import sys
import threading
import time
import uuid

from flake_ids import AsyncIds, FlakeError, Ids, InvalidID, Key, database

CLASS = AsyncIds if "AIO" in os.environ else Ids
requests = []


def seal():
    for line in sys.stdin:
        secret, number, sealed, _ = line.rstrip("\n").split(",")
        key = Key("usr", bytes.fromhex(secret))
        block = key.seal_uuid(int(number)) if number else uuid.UUID(sealed)
        try:
            opened = key.unseal_uuid(block)
            text = key.seal(opened)
            assert key.unseal(text) == opened
            print(secret, opened, block, text.removeprefix("usr_"), sep=",")
        except InvalidID:
            print(secret, "", block, "", sep=",")


def unseal():
    for line in sys.stdin:
        key = Key("usr", bytes.fromhex(line.split(",")[0]))
        try:
            print(key.unseal(bytes.fromhex(line.split(",")[1]).decode()))
        except Exception as error:
            print(type(error).__name__)


def options():
    age = os.environ.get("MAX_AGE", "1")
    most, patience = int(os.environ.get("MOST", "10000")), float(os.environ.get("PATIENCE", "5"))
    return {"max_age": float(age) if age else None, "most": most, "patience": patience, "log": lambda *_: None}


async def result(made):
    return await made if inspect.isawaitable(made) else made


async def timed():
    database.Database.batch = lambda _self, _layout, count: list(range(count))
    ids, best = CLASS("fake", max_age=None, most=100_000), 1e9
    await result(ids.take(100_000))
    for _ in range(500):
        await result(ids.next())
        began = time.perf_counter_ns()
        if CLASS is Ids:
            for _ in range(1000):
                ids.next()
        else:
            for _ in range(1000):
                await ids.next()
        best = min(best, (time.perf_counter_ns() - began) / 1000)
    print(round(best))
    await result(ids.close())


async def many():
    ids, made, count = CLASS("twitter", "", **options()), [], 125_000
    if CLASS is Ids:
        threads = [threading.Thread(target=lambda: made.extend([ids.next() for _ in range(count)])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:

        async def task():
            made.extend([await ids.next() for _ in range(count)])

        await asyncio.gather(*[task() for _ in range(8)])
    await result(ids.close())
    print(*made, sep="\n")


def measure():
    batch = database.Database.batch

    def measured(*arguments):
        began = time.perf_counter_ns()
        try:
            return batch(*arguments)
        finally:
            requests.append((time.perf_counter_ns() - began) // 1000)

    database.Database.batch = measured


async def act(ids, command, count=1, pause=0):
    if command == "longest":
        return print("longest", max(requests))
    if command == "close":
        return await result(ids.close())
    if command == "try":
        return print(ids.try_next() or "none")
    if command == "take":
        made = await result(ids.take(count))
        return sys.stdout.writelines(f"{one}\n" for one in made)
    for _ in range(count):
        before = time.time_ns() // 1000
        print(await result(ids.next()), before)
        if pause:
            await asyncio.sleep(pause / 1000)
    return None


async def talk():
    measure()
    ids = CLASS("twitter", "", **options())
    while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        command, *numbers = line.split()
        try:
            await act(ids, command, *map(int, numbers))
        except FlakeError as problem:
            print("error", type(problem).__name__, getattr(problem.__cause__, "sqlstate", None) or "-")
        print("done", flush=True)


if sys.argv[1] == "seal":
    seal()
elif sys.argv[1] == "unseal":
    unseal()
else:
    asyncio.run({"time": timed, "many": many, "talk": talk}[sys.argv[1]]())
