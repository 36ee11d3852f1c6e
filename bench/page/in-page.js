/** What runs in the page while it is measured. Plain JavaScript: nothing else of the benches knows of a document. */

/** Milliseconds until an element that the selector finds was on the screen. */
async function shownAt(selector) {
  while (!document.querySelector(selector)) await new Promise((resolve) => requestAnimationFrame(resolve));
  // After the next frame it is on the screen.
  await new Promise((resolve) => requestAnimationFrame(resolve));
  return performance.now();
}

const tasks = [];
new PerformanceObserver((list) => tasks.push(...list.getEntries())).observe({
  type: 'longtask',
  buffered: true,
});

/** Milliseconds of the longest task so far; only those over 50 ms are known. */
function longestTask() {
  return Math.max(0, ...tasks.map(({ duration }) => duration));
}

const seen = {};

/** Notes when the frame with each mark was drawn. Reads only what was added: the text of the whole page costs a layout. */
function watchForMarks() {
  const look = (records) => {
    const added = records.flatMap(({ type, target, addedNodes }) =>
      type === 'characterData' ? [target] : [...addedNodes],
    );
    const text = added.map(({ textContent }) => textContent).join('\n');
    const fresh = (text.match(/mark-\d+-end/g) ?? []).filter((mark) => !(mark in seen));
    for (const mark of fresh) seen[mark] = null;
    if (fresh.length === 0) return;
    // After the next frame the text is on the screen.
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => fresh.forEach((mark) => (seen[mark] = Date.now()));
      port2.postMessage(null);
    });
  };
  new MutationObserver(look).observe(document.body, { childList: true, characterData: true, subtree: true });
}

/** Does something in each of so many frames, and tells how long they took. */
async function timeFrames(frames, act) {
  const deltas = [];
  let last = await new Promise((resolve) => requestAnimationFrame(resolve));
  for (let frame = 0; frame < frames; frame++) {
    act(frame);
    const now = await new Promise((resolve) => requestAnimationFrame(resolve));
    deltas.push(now - last);
    last = now;
  }
  const sorted = deltas.toSorted((a, b) => a - b);
  return {
    longestMs: sorted.at(-1),
    usualMs: sorted[sorted.length >> 1],
    long: deltas.filter((ms) => ms > 50).length,
    frames,
  };
}

/** Scrolls the longest list from its end to its beginning and back, frame by frame. */
async function scrollLongest(frames) {
  const room = (element) => element.scrollHeight - element.clientHeight;
  const [list] = [...document.querySelectorAll('*')]
    .filter((element) => /auto|scroll/.test(getComputedStyle(element).overflowY))
    .toSorted((a, b) => room(b) - room(a));
  const step = (room(list) / frames) * 2;
  let distance = 0;
  const timed = await timeFrames(frames, (frame) => {
    const before = list.scrollTop;
    list.scrollTop += frame < frames / 2 ? -step : step;
    distance += Math.abs(list.scrollTop - before);
  });
  return { ...timed, distance };
}

/** Zooms the timeline in from all of it and out again, frame by frame, as a wheel does. */
function zoomTimeline(frames) {
  const lanes = document.querySelector('.timeline-scroller');
  const { left, top, width, height } = lanes.getBoundingClientRect();
  const wheel = { ctrlKey: true, clientX: left + width / 2, clientY: top + height / 2 };
  return timeFrames(frames, (frame) => {
    const deltaY = frame < frames / 2 ? -60 : 60;
    lanes.dispatchEvent(new WheelEvent('wheel', { ...wheel, deltaY, bubbles: true, cancelable: true }));
  });
}

globalThis.bench = { shownAt, longestTask, watchForMarks, seen, scrollLongest, zoomTimeline };
