"use strict";
/* What every page does: the theme, and buttons that copy a command. */
(function () {
  const byId = (id) => document.getElementById(id);

  // Theme: follows the system until the reader chooses; the choice is kept where the browser lets a file keep one.
  const root = document.documentElement;
  const themeButton = byId("theme");
  const themes = ["auto", "light", "dark"];
  const kept = {
    get() { try { return localStorage.getItem("onnxspec-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("onnxspec-theme", value); } catch { /* a private window keeps nothing */ } },
  };
  function setTheme(name) {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    themeButton.textContent = `Theme: ${name}`;
  }
  let theme = themes.includes(kept.get()) ? kept.get() : "auto";
  setTheme(theme);
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    kept.set(theme);
    setTheme(theme);
  });

  function copyable(box) {
    const button = box.querySelector("button");
    const code = box.querySelector("code");
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code); // no clipboard for files in some browsers: selected, ready to copy
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
  document.querySelectorAll(".command").forEach(copyable);
  globalThis.onnxspecCopyable = copyable;
})();
