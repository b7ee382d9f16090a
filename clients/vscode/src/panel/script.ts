/** The script of the panel: tabs, and buttons that ask the extension for something. */

export const SCRIPT = `
const editor = acquireVsCodeApi();
function select(name) {
  for (const tab of document.querySelectorAll("[data-tab]")) tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
  for (const page of document.querySelectorAll("[data-page]")) page.hidden = page.dataset.page !== name;
  editor.setState({ ...editor.getState(), tab: name });
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.tab) select(button.dataset.tab);
  if (button.dataset.ask) editor.postMessage({ ask: button.dataset.ask });
});
window.addEventListener("scroll", () => editor.setState({ ...editor.getState(), top: window.scrollY }));
const before = editor.getState();
if (before && before.tab) select(before.tab);
if (before && before.of === document.body.dataset.of && before.top) window.scrollTo(0, before.top);
editor.setState({ ...editor.getState(), of: document.body.dataset.of });
`;
