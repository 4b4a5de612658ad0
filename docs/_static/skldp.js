// Buttons of the menu have icons alone; readers of the screen need names.
document.addEventListener("DOMContentLoaded", () => {
  for (const icon of document.querySelectorAll("summary > .toctree-toggle")) {
    const title = icon.closest("li").querySelector("a").textContent.trim();
    icon.parentElement.setAttribute("aria-label", `Pages below ${title}`);
  }
});
