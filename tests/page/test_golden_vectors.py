from page.golden_questions import QUESTIONS, questions
from page.golden_reviews import REVIEWS, reviews
from page.golden_vectors import GOLDEN, vectors


def test_the_vectors_the_page_is_tested_with_are_those_of_the_fold() -> None:
    assert GOLDEN.read_bytes() == vectors(), "run python tests/page/golden_vectors.py"


def test_the_questions_the_page_is_tested_with_are_those_of_the_command_line() -> None:
    assert QUESTIONS.read_bytes() == questions(), "run python tests/page/golden_questions.py"


def test_the_prompts_of_reviews_the_page_is_tested_with_are_those_of_python() -> None:
    assert REVIEWS.read_bytes() == reviews(), "run python tests/page/golden_reviews.py"
