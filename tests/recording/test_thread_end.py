"""What is registered for the end of a thread happens once, on that thread."""

import threading

from workbench.recording.thread_end import at_thread_end, forget_at_thread_end


def run(work: object) -> int:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    thread.join()
    assert thread.ident is not None
    return thread.ident


def test_it_happens_on_the_thread_that_ends() -> None:
    seen: list[int] = []
    ident = run(lambda: at_thread_end(lambda: seen.append(threading.get_ident())))
    assert seen == [ident]


def test_what_was_taken_back_does_not_happen() -> None:
    seen: list[str] = []

    def first() -> None:
        seen.append("first")

    def second() -> None:
        seen.append("second")

    def work() -> None:
        at_thread_end(first)
        at_thread_end(second)
        forget_at_thread_end(first)
        forget_at_thread_end(first)

    run(work)
    assert seen == ["second"]


def test_the_main_thread_is_left_alone() -> None:
    def never() -> None:
        raise AssertionError

    at_thread_end(never)
    forget_at_thread_end(never)
