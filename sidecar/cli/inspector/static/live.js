// Shows the page again when its conversation has changed; where one has scrolled to stays.
"use strict";
const state = document.body.dataset.state;
if (state !== undefined) {
  let known;
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(state);
      const { changed } = await answer.json();
      if (known !== undefined && changed !== known && !document.activeElement?.matches("input")) location.reload();
      known ??= changed;
    } catch {
      // The inspector has ended; what is shown stays.
    }
  };
  setInterval(look, 2000);
  look();
}
