"""Puts load on a running `aggdec serve`.

usage: python configs/shared/measuring/load.py http://127.0.0.1:8081 [--seconds 10] [--pid PID] [--growing]

First 1, 8 and 32 clients send texts of three sentences that no one has sent before. An answer is wrong where it is
about another's sentences or does not correct this one's. Then one client types: every 300 ms it sends a text of 40
sentences, of which one has changed.

--growing: instead, 64 clients translate texts that grow by a word in each request with sessions, beside 64 without;
their server needs a translator that reads drafts (aggdec serve --translator CKPT). Whether answers are right:
growing.py.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import requests

ERRONEOUS = (
    "On page {} she have two brother and they goes to school every day.",
    "The {} people in the village was very happy about the news, because they has waited for it since two years.",
    "I am agree with point {} of your letter, but I would like discuss about it with my colleague.",
)


def check(
    session: requests.Session, url: str, text: str
) -> tuple[list[dict[str, Any]], float]:
    """The matches in a text, and the seconds until they were there.

    Raises:
        requests.HTTPError: the server refused it.
    """
    start = time.perf_counter()
    answer = session.post(
        f"{url}/v2/check", data={"text": text, "language": "en"}, timeout=60
    )
    answer.raise_for_status()
    return answer.json()["matches"], time.perf_counter() - start


def client(url: str, until: float, numbers: count[int]) -> tuple[list[float], int]:
    """The seconds of each request of one client, and the number of answers that were not those to its texts."""
    seconds = []
    wrong = 0
    with requests.Session() as session:
        while time.perf_counter() < until:
            number = str(next(numbers))
            text = " ".join(sentence.format(number) for sentence in ERRONEOUS)
            matches, taken = check(session, url, text)
            seconds.append(taken)
            corrects = any(
                match["replacements"][0]["value"] == "brothers" for match in matches
            )
            wrong += not corrects or not all(
                number in match["sentence"] for match in matches
            )
    return seconds, wrong


def typist(url: str, seconds: float, numbers: count[int]) -> list[float]:
    """The seconds of each request of a client that types in a text of 40 sentences."""
    sentences = [ERRONEOUS[place % 3].format(next(numbers)) for place in range(40)]
    taken = []
    with requests.Session() as session:
        check(session, url, " ".join(sentences))
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            sentences[random.randrange(40)] = random.choice(ERRONEOUS).format(
                next(numbers)
            )
            taken.append(check(session, url, " ".join(sentences))[1])
            time.sleep(max(0.0, 0.3 - taken[-1]))
    return taken


def captions(url: str, until: float, session: str) -> list[float]:
    """The seconds of each request of a client that translates texts that grow; `session`: "" for none."""
    taken = []
    with requests.Session() as connection:
        while time.perf_counter() < until:
            words = random.choice(ERRONEOUS).format(random.random()).split()
            for count in range(1, len(words) + 1):
                fields = {"q": " ".join(words[:count]), "session": session}
                start = time.perf_counter()
                answer = connection.post(
                    f"{url}/translate",
                    data={"source": "en", "target": "de", **fields},
                    timeout=60,
                )
                answer.raise_for_status()
                taken.append(time.perf_counter() - start)
    return taken


def growing(url: str, duration: float, pid: int | None) -> None:
    """Prints a line for the clients with sessions, and one for those without."""
    start = time.perf_counter()
    with ThreadPoolExecutor(128) as pool:
        runs = {
            kind: [
                pool.submit(captions, url, start + duration, f"{kind} {number}" * used)
                for number in range(64)
            ]
            for kind, used in (("sessions", True), ("without", False))
        }
        for kind, clients in runs.items():
            seconds = [taken for client in clients for taken in client.result()]
            wall = time.perf_counter() - start
            print(row(f"64 {kind}", seconds, wall, "-", pid), flush=True)


def row(
    name: str, seconds: list[float], wall: float, wrong: int | str, pid: int | None
) -> str:
    """A line of the table; `pid` is the server's, for its memory."""
    seconds.sort()
    p50, p95 = (1000 * seconds[int(len(seconds) * part)] for part in (0.5, 0.95))
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) if pid else 0
    memory = (
        f"{pages * os.sysconf('SC_PAGE_SIZE') / 2**20:9.0f}" if pid else "        -"
    )
    load = os.getloadavg()[0]
    return f"{name:12}{len(seconds):8}{wrong:>8}{len(seconds) / wall:8.1f}{p50:8.0f}{p95:8.0f}{memory}{load:8.1f}"


def main() -> None:
    """Prints a line for each kind of load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument(
        "--seconds", type=float, default=10, help="of each kind of load (default: 10)"
    )
    parser.add_argument(
        "--pid", type=int, help="the server's process, to show its memory"
    )
    parser.add_argument(
        "--growing", action="store_true", help="texts that grow, with sessions"
    )
    args = parser.parse_args()
    numbers = count(random.randrange(10**6, 9 * 10**6))
    print("clients     requests   wrong      /s  p50 ms  p95 ms  RSS MiB load avg")
    if args.growing:
        growing(args.url, args.seconds, args.pid)
        return
    # clients that send new sentences
    for clients in (1, 8, 32):
        start = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            runs = [
                pool.submit(client, args.url, start + args.seconds, numbers)
                for _ in range(clients)
            ]
            results = [run.result() for run in runs]
        seconds = [taken for answers, _ in results for taken in answers]
        wall = time.perf_counter() - start
        print(
            row(
                str(clients),
                seconds,
                wall,
                sum(wrong for _, wrong in results),
                args.pid,
            ),
            flush=True,
        )
    # a client that types
    print(
        row(
            "typing", typist(args.url, args.seconds, numbers), args.seconds, 0, args.pid
        )
    )


if __name__ == "__main__":
    main()
