import { useEffect, useState } from 'preact/hooks';
import { dialog, typedAhead } from '../state/dialogs.ts';
import { answersOf, findConversations, type Item, paletteItems, searchItems } from '../state/palette.ts';
import { Dialog } from './dialog.tsx';

const PAUSE_MS = 200;
const MIN_SEARCH = 3;

/** Results from the server: conversations by id or first text, and text in their events. */
async function findItems(q: string, about: 'conversation' | null): Promise<Item[]> {
  const isText = about === null && q.length >= MIN_SEARCH;
  const found = await Promise.all([findConversations(q), isText ? searchItems(q) : []]);
  return found.flat();
}

/** Navigates anywhere, runs any legal command, and searches all text. */
export function Palette({ about }: { about: 'conversation' | null }) {
  const [words, setWords] = useState(typedAhead);
  const [index, setIndex] = useState(0);
  const [asking, setAsking] = useState<Item | null>(null);
  const [found, setFound] = useState<{ q: string; items: Item[]; problem?: string } | null>(null);
  const q = words.trim();
  useEffect(() => {
    if (q === '') return setFound(null);
    let isOver = false;
    const timer = setTimeout(() => {
      findItems(q, about).then(
        (items) => !isOver && setFound({ q, items }),
        (error: unknown) => !isOver && setFound({ q, items: [], problem: String(error) }),
      );
    }, PAUSE_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [q, about]);
  const known = paletteItems(words, about);
  const keys = new Set(known.map(({ key }) => key));
  const others = found?.q === q ? found.items : [];
  const items = asking ? answersOf(asking) : [...known, ...others.filter(({ key }) => !keys.has(key))];
  const chosen = Math.min(index, items.length - 1);
  useEffect(() => {
    document.getElementById(`item-${chosen}`)?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  const act = (item: Item | undefined) => {
    if (!item) return;
    if (item.asks) {
      setAsking(item);
      setIndex(0);
      return;
    }
    dialog.value = null;
    item.act();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') act(items[chosen]);
    else if (event.key === 'ArrowDown') setIndex(Math.min(items.length - 1, chosen + 1));
    else if (event.key === 'ArrowUp') setIndex(Math.max(0, chosen - 1));
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label="Palette">
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-items"
        aria-activedescendant={items.length > 0 ? `item-${chosen}` : undefined}
        aria-label={
          about === null ? 'Agent, turn, conversation, command, or text of an event' : 'Conversation'
        }
        placeholder={about === null ? 'Agent, turn, conversation, command, or words …' : 'Conversation …'}
        autoFocus
        value={words}
        onInput={(event) => {
          setWords(event.currentTarget.value);
          setAsking(null);
          setIndex(0);
        }}
        onKeyDown={onKeyDown}
      />
      <Results items={items} chosen={chosen} act={act} />
      {items.length === 0 && <p class="quiet palette-none">{found?.problem ?? 'No match.'}</p>}
    </Dialog>
  );
}

interface ResultsProps {
  items: readonly Item[];
  /** Index of the selected item. */
  chosen: number;
  act: (item: Item) => void;
}

function Results({ items, chosen, act }: ResultsProps) {
  return (
    <ul class="palette-items" id="palette-items" role="listbox" aria-label="Results">
      {items.map((item, place) => (
        <li
          key={item.key}
          id={`item-${place}`}
          role="option"
          aria-selected={place === chosen}
          onClick={() => act(item)}
        >
          <span class="palette-group">{item.group === items[place - 1]?.group ? '' : item.group}</span>
          <span class="clip">{item.text}</span>
          <span class="quiet clip">{item.note}</span>
        </li>
      ))}
    </ul>
  );
}
