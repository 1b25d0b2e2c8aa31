// A click on the head of a column sorts its table; everything else on the page works without this.
document.querySelectorAll("table").forEach((table) => {
  const body = table.tBodies[0];
  if (!body || body.rows.length < 3) return;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const key = (row) => row.cells[column].dataset.v;
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x !== undefined && y !== undefined) return x - y;
        if (x !== undefined || y !== undefined) return x === undefined ? 1 : -1;
        return a.cells[column].textContent.localeCompare(b.cells[column].textContent);
      };
      const rows = [...body.rows].sort(order);
      if (down) rows.reverse();
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    };
    head.classList.add("sorting");
    head.tabIndex = 0;
    head.title = "Sort by this column";
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
});
