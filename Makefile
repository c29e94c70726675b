# `make run`: the first study, from nothing to tables and figures. `make test`: the tests. Both install what they need.
PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell $(name) -c 'import sys; print(sys.executable)' 2>/dev/null)))
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
PAGES  := $(VENV)/.installed-docs
NAME   ?= first

.PHONY: run test slow study results check bench docs pictures

run: NAME = first
run: study

# Finished cells are not solved again, unless ARGS=force=true; a table has all cells below runs/NAME.
study: $(READY)
	@test -f experiments/$(NAME)/study.yaml || \
	  { echo "There is no study $(NAME); there are: $(notdir $(patsubst %/study.yaml,%,$(wildcard experiments/*/study.yaml)))"; exit 1; }
	$(BIN)/msched run -cd experiments/$(NAME) -cn study $(ARGS)
	$(BIN)/msched table runs/$(NAME)
	@echo "Tables, figures and one record a cell: runs/$(NAME)"

# The part of a study that is committed: tables without times, the figure, and where they come from.
results: study
	$(BIN)/msched table runs/$(NAME) --output results/$(NAME) --no-timings

test: $(READY)
	$(BIN)/pytest -q -n 2

slow: $(READY)
	$(BIN)/pytest -q -n 2 -m slow

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

# The pages below site/; a broken link or a docstring that cannot be shown is an error.
docs: $(PAGES)
	$(BIN)/mkdocs build --strict --quiet
	@echo "Pages: site/index.html"

# The committed parts of the pages that are computed: the table of the networks, and the pictures of the small ones.
pictures: $(READY)
	$(BIN)/python docs/pictures.py

$(READY): pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed; name one with: make PYTHON=/path/to/python3.11"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[launch,draw,dev]'
	@touch $@

$(PAGES): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@
