from dragoman.review import MOST_LINES, PutBack, Review, ReviewComment, review_prompt


def test_a_review_is_one_prompt_with_the_code_it_was_written_on() -> None:
    comments = [
        ReviewComment(
            path="src/app.py",
            start=12,
            end=13,
            lines=["-    total = None", "+    total = 0", "     return total"],
            text="Why not None?\n",
        ),
        ReviewComment(
            path="old.py", side="old", start=7, lines=["-KEEP = 1"], text="Keep it.", stale=True
        ),
    ]
    undone = [PutBack(path="src/c.py", start=3, end=9), PutBack(path="d.png")]
    assert review_prompt(Review(comments=comments, put_back=undone)) == (
        "Please address these comments on your changes.\n\n"
        "src/app.py:12-13:\n```diff\n-    total = None\n+    total = 0\n     return total\n```\n"
        "Why not None?\n\n"
        "old.py:7 before the change:\n```diff\n-KEEP = 1\n```\n"
        "(This code has changed since the comment was written.)\nKeep it.\n\n"
        "I put these changes back, so the files are as they were before:\n"
        "- src/c.py:3-9\n- d.png"
    )


def test_what_the_person_says_of_all_of_it_comes_first() -> None:
    review = Review(text=" Good. ", comments=[ReviewComment(path="a", text="x")])
    assert review_prompt(review) == "Good.\n\na:\nx"


def test_an_empty_review_is_no_prompt() -> None:
    assert review_prompt(Review(text=" \n")) == ""


def test_quoted_code_cannot_end_its_fence_and_a_name_is_one_line() -> None:
    comment = ReviewComment(path="a\n```", lines=["+```", "+~~~"], text="x")
    assert review_prompt(Review(text="t", comments=[comment])) == (
        't\n\n"a\\n```":\n````diff\n+```\n+~~~\n````\nx'
    )


def test_a_long_quote_keeps_both_ends() -> None:
    lines = [f"+{at}" for at in range(MOST_LINES + 5)]
    prompt = review_prompt(Review(comments=[ReviewComment(path="a", lines=lines, text="x")]))
    assert "+19\n… 5 lines …\n+25\n" in prompt
    assert f"+{MOST_LINES + 4}\n```" in prompt
