import { computed, effect, signal, untracked } from '@preact/signals';
import { conversation, go, route } from './route.ts';

/**
 * Marks the searched words wherever they are shown, by ranges over the text, so that the document stays unchanged.
 *  H1  In a conversation they come from its filter, or from `hit` in the address that a search result leads to.
 *  H2  On home they are what is typed into the search over all conversations.
 */
const typed = signal(route.peek().find);
const words = computed(() => {
  const { q, hit } = route.value;
  const sought = conversation.value === null ? typed.value || q : hit || q;
  // Quotation marks only keep the words of a phrase together.
  return sought.replaceAll('"', '').trim();
});

/** Parts of the page in whose text hits are marked. */
const SEARCHED = '.list-rows, .reading-column, .detail-panel, .search-all ul, .home-groups, .palette-items';
const MAX_RANGES = 2_000;
const MAX_CHARS = 300_000;
const NAME = 'hit';

/** Starts marking hits. A browser without the Custom Highlight API shows none. */
export function markHits(): void {
  if (!('highlights' in CSS)) return;
  document.addEventListener('input', ({ target }) => {
    if (target instanceof HTMLInputElement && target.id === 'search' && conversation.peek() === null)
      typed.value = target.value;
  });
  // A reader who follows a hit finds the words marked in the conversation, because the address names them.
  effect(() => {
    const { conversation: id, event, hit } = route.value;
    if (id === null || event === null || hit !== '') return;
    const found = untracked(() => typed.value.trim());
    typed.value = '';
    if (found !== '') untracked(() => go({ hit: found }, { replace: true }));
  });
  effect(() => {
    const sought = words.value;
    CSS.highlights.delete(NAME);
    if (sought === '') return;
    let frame = 0;
    const mark = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        CSS.highlights.set(NAME, new Highlight(...rangesOf(sought)));
      });
    };
    const observer = new MutationObserver(mark);
    observer.observe(document.body, { childList: true, characterData: true, subtree: true });
    mark();
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
    };
  });
}

/** The places where the whole phrase occurs, else those of each word. */
function rangesOf(sought: string): Range[] {
  const phrase = rangesOfAny([sought]);
  return phrase.length > 0 ? phrase : rangesOfAny(sought.split(/\s+/).filter((word) => word.length > 1));
}

function rangesOfAny(sought: readonly string[]): Range[] {
  const wanted = sought.map((each) => each.toLowerCase());
  const ranges: Range[] = [];
  let chars = 0;
  for (const root of document.querySelectorAll(SEARCHED)) {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
      const text = node.nodeValue ?? '';
      chars += text.length;
      if (chars > MAX_CHARS) return ranges;
      addRanges(ranges, node, text.toLowerCase(), wanted);
      if (ranges.length >= MAX_RANGES) return ranges;
    }
  }
  return ranges;
}

/** `text` is the node's text in lower case. If a letter changes its length in lower case, the node gets no marks. */
function addRanges(ranges: Range[], node: Node, text: string, wanted: readonly string[]): void {
  if (text.length !== node.nodeValue?.length) return;
  for (const word of wanted) {
    for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length)) {
      if (ranges.length >= MAX_RANGES) return;
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + word.length);
      ranges.push(range);
    }
  }
}
