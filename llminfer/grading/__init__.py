"""The autograder: a judge that knows the answers, workers that run the students' code and know only the questions."""
