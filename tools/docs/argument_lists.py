"""For griffe: shows what a docstring says of each argument, "name: text. other: text.", as a list."""

import re

import griffe


class ArgumentLists(griffe.Extension):
    def on_package(self, *, pkg, **_):
        """When all is read, bases of classes in other modules, too."""
        _rewrite_members(pkg)


def _rewrite_members(owner):
    for one in owner.members.values():
        if one.is_alias:
            continue
        if one.docstring and (one.is_function or one.is_class):
            names = {parameter.name for parameter in one.parameters}
            if one.is_class:
                names |= {name for name, member in one.members.items() if member.is_attribute}
            one.docstring.value = as_lists(one.docstring.value, names - {"self", "cls"})
        if one.is_class or one.is_module:
            _rewrite_members(one)


def as_lists(text, names):
    """The text with an item for each sentence that begins with names of arguments and a colon."""
    if not names:
        return text
    one_of = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    item = re.compile(rf"(?:(?<=[.;])\s+|^)((?:{one_of})(?:(?:, | and )(?:{one_of}))*):\s+", re.MULTILINE)
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text):
        paragraph, *raises = re.split(r"(?<=\.)\s+(?=Raises )", paragraph, maxsplit=1)
        first, *rest = item.split(paragraph)
        items = [f"- **{name}**: {' '.join(said.split())}" for name, said in zip(rest[::2], rest[1::2])]
        paragraphs += [first.rstrip()] * bool(first.strip()) + ["\n".join(items)] * bool(items) + raises
    return "\n\n".join(paragraphs)
