"""The numbers of a page."""

from html.parser import HTMLParser


class Numbers(HTMLParser):
    """All elements with a data-value: (its name, the value, the text that is shown)."""

    def __init__(self, text):
        super().__init__()
        self.found, self._open = [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self._open = "data-value" in attributes
        if self._open:
            self.found.append([attributes.get("data-name"), float(attributes["data-value"]), ""])

    def handle_data(self, data):
        if self._open:
            self.found[-1][2] += data

    def handle_endtag(self, tag):
        self._open = False
