import { go, route, type Tab, TABS } from '../../state/route.ts';

const WORDS: Record<Tab, string> = {
  state: 'State',
  prompt: 'Prompt',
  diff: 'Diff',
  tools: 'Tools',
  events: 'Events',
  raw: 'Raw',
};

/** The arrow keys move between tabs; the Tab key leaves them. */
export function DetailTabs() {
  const { tab } = route.value;
  const move = (event: KeyboardEvent) => {
    const to = targetOf(event.key, TABS.indexOf(tab));
    if (to === null) return;
    event.preventDefault();
    const next = TABS[(to + TABS.length) % TABS.length] ?? tab;
    go({ tab: next });
    document.getElementById(`detail-tab-${next}`)?.focus();
  };
  return (
    <div class="detail-tabs" role="tablist" aria-label="Views of the turn" onKeyDown={move}>
      {TABS.map((each) => (
        <button
          key={each}
          type="button"
          role="tab"
          id={`detail-tab-${each}`}
          aria-selected={each === tab}
          aria-controls="detail-panel"
          tabIndex={each === tab ? 0 : -1}
          onClick={() => go({ tab: each })}
        >
          {WORDS[each]}
        </button>
      ))}
    </div>
  );
}

function targetOf(key: string, at: number): number | null {
  if (key === 'ArrowRight') return at + 1;
  if (key === 'ArrowLeft') return at - 1;
  if (key === 'Home') return 0;
  return key === 'End' ? -1 : null;
}
