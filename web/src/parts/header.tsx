import { duration, percent, plural, short, whole } from '../shared/format.ts';
import { COMPACTION_PHASES } from '../../../src/library/projection/words.ts';
import { Go } from '../shared/go.tsx';
import { Icon } from '../shared/icon.tsx';
import { UsageBar } from '../shared/usage-bar.tsx';
import { connection } from '../state/connection.ts';
import { shown } from '../state/live.ts';
import { isQueueShown, queues } from '../state/inbox.ts';
import { showDialog } from '../state/dialogs.ts';
import { compactionNow } from '../state/compaction-now.ts';
import { shownSeq } from '../state/past.ts';
import { conversation, route } from '../state/route.ts';
import { head, nameOf, turns } from '../state/selection.ts';
import { leastCached } from '../state/turn-figures.ts';
import { toggleTheme } from '../state/theme.ts';
import { usageShown } from '../state/usage.ts';
import { WhoAmI } from './caller.tsx';
import { HeaderAgents } from './header-agents.tsx';
import { HeaderSpend } from './header-spend.tsx';
import '../style/header.css';

/** The health of the system. Every number links to its details. */
export function Header() {
  const id = conversation.value;
  return (
    <header class="header">
      <Go
        to={{ conversation: null, view: '', find: '', author: '', kind: '' }}
        class="header-home"
        title="All conversations"
      >
        Troupe
      </Go>
      <button
        type="button"
        class="header-switch"
        title="Go to another conversation"
        onClick={() => showDialog('palette', 'conversation')}
      >
        <span class="clip">{id ?? 'All conversations'}</span>
        <Icon name="down" />
      </button>
      <nav class="header-chips" aria-label="Health">
        <When />
        {id !== null && <HeaderAgents />}
        <Queue />
        {id !== null && <Context />}
        {id !== null && <HeaderSpend />}
        <Go
          class="chip"
          to={{ conversation: null, view: 'costs' }}
          isCurrent={id === null && route.value.view === 'costs'}
        >
          Costs
        </Go>
      </nav>
      <span class="header-tools">
        <button
          type="button"
          class="header-key"
          onClick={() => showDialog('palette')}
          title="Go anywhere, do anything"
        >
          <kbd>{isMac ? '⌘K' : 'Ctrl K'}</kbd>
        </button>
        <WhoAmI />
        <button
          type="button"
          class="tool"
          aria-label="Light or dark"
          title="Light or dark (d)"
          onClick={toggleTheme}
        >
          <Icon name="sun" />
        </button>
        <button
          type="button"
          class="tool"
          aria-label="Keys"
          title="Keys (?)"
          onClick={() => showDialog('help')}
        >
          ?
        </button>
      </span>
    </header>
  );
}

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

function When() {
  const { state } = connection.value;
  const { at, conversation: id } = route.value;
  const seq = shownSeq.value;
  if (state === 'gone' || state === 'token') return null;
  const [kind, word] =
    state === 'lost'
      ? ['lost', 'Lost']
      : at !== null
        ? ['past', 'Past']
        : state === 'live'
          ? ['live', 'Live']
          : ['lost', 'Opening'];
  return (
    <span class={`chip chip-${kind}`}>
      <span class="chip-dot" aria-hidden="true" />
      {word}
      {id !== null && head.value > 0 && (
        <Go to={{ list: 'events', kind: '*', event: seq }} title="The last event shown">
          seq {whole(seq)}
          {at !== null && ` of ${whole(head.value)}`}
        </Go>
      )}
    </span>
  );
}

function Queue() {
  const depth = queues.value;
  if (!depth) return null;
  const { turns, active, wait } = depth;
  const { waitingTotal, oldestMs } = turns;
  return (
    <button
      type="button"
      class="chip"
      aria-expanded={conversation.value === null ? isQueueShown.value : undefined}
      title={`${plural(waitingTotal, 'turn')} waiting, ${active} active`}
      onClick={showQueue}
    >
      <span>
        queue {whole(waitingTotal)}
        <span class="chip-more">
          {oldestMs !== null && <>, oldest {duration(oldestMs)}</>}
          {wait && <>, p95 {duration(wait.p95Ms)}</>}
        </span>
      </span>
    </button>
  );
}

function showQueue(): void {
  if (conversation.peek() === null) isQueueShown.value = !isQueueShown.peek();
  else document.getElementById('queues')?.scrollIntoView({ block: 'nearest' });
}

function Context() {
  const usage = usageShown.value;
  const projection = shown.value;
  const making = compactionNow(projection?.compactions ?? []);
  const last = projection?.compactions.at(-1);
  return (
    <>
      {usage && (
        <Go
          class="chip"
          to={{ agent: usage.agent.id, turn: usage.agent.lastTurn ?? usage.agent.turn, tab: 'prompt' }}
          title={`Context of ${usage.agent.name}: ${whole(usage.tokens.estimate)} tokens of ${whole(usage.tokens.window)}`}
        >
          ctx {Math.round(usage.tokens.percent)}%
          <UsageBar percent={usage.tokens.percent} level={usage.tokens.level} />
        </Go>
      )}
      {making ? (
        <Go class="chip chip-making" to={{ list: 'turns', kind: 'context', event: making.seq }}>
          {nameOf(making.agent)}: {COMPACTION_PHASES[making.phase]} …
        </Go>
      ) : (
        last?.phase === 'done' &&
        last.reduced !== null && (
          <Go
            class="chip"
            to={{ list: 'turns', kind: 'context' }}
            title={`The last compaction, of ${nameOf(last.agent)}`}
          >
            compacted −{Math.round(last.reduced)}%
          </Go>
        )
      )}
      <Cache />
    </>
  );
}

/** Leads to the turn that read least of its prompt from the cache. */
function Cache() {
  const { input = 0, cacheRead = 0 } = shown.value?.totals.tokens ?? {};
  if (input === 0) return null;
  const worst = leastCached(turns.value);
  const title = `${short(cacheRead)} of ${short(input)} tokens were read from a cache`;
  return (
    <Go
      class="chip"
      to={{ ...(worst && { agent: worst.agent, turn: worst.id }), tab: 'prompt' }}
      title={worst ? `${title}; leads to turn ${worst.number}, which read the least` : title}
    >
      cache {percent(cacheRead, input)}
    </Go>
  );
}
