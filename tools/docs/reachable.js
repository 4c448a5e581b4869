// What the theme's script adds to a page, for keyboards and screen readers: groups of buttons are no landmarks, and
// tables that scroll can be reached by keys.
const mend = () => {
  for (const one of document.querySelectorAll("nav.md-code__nav")) one.setAttribute("role", "none");
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap"))
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
};
new MutationObserver(mend).observe(document.body, {childList: true, subtree: true});
addEventListener("resize", mend);
mend();
