import { useState } from 'preact/hooks';
import { STANDING_STATES, type StandingState } from '../../../src/library/projection/standing.ts';
import { Choice } from '../shared/choice.tsx';
import { Copy } from '../shared/copy.tsx';
import { useFrames } from '../shared/frames.ts';
import { plural, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { later } from '../shared/later.tsx';
import { Skeleton } from '../shared/skeleton.tsx';
import { STATE_WORDS, StateIcon } from '../shared/standing.tsx';
import { TextFilter } from '../shared/text-filter.tsx';
import type { Inbox, InboxLine } from '../../../src/http/inbox.ts';
import { isLost } from '../state/connection.ts';
import { canGrow, inbox, isQueueShown, showMore, broken } from '../state/inbox.ts';
import { go, route } from '../state/route.ts';
import { filtersOf, isSame, NO_FILTERS, removeView, savedViews, saveView } from '../state/saved-views.ts';
import { base } from '../state/settings.ts';
import { alone, byCause } from '../state/causes.ts';
import { CauseGroup, isGroup } from './cause-group.tsx';
import { InboxRow } from './inbox-row.tsx';
import { StuckList } from './stuck-list.tsx';
import { SearchAll } from './search-all.tsx';
import { Since } from './since.tsx';
import '../style/home.css';

const QueuesPanel = later(async () => (await import('./queues-panel.tsx')).QueuesPanel);

/** All conversations, grouped by what they need. If there are none, how to start one. */
export function Home() {
  const answer = inbox.value;
  if (!answer)
    return (
      <main class="home" aria-label="Conversations">
        <h1 class="unseen">Conversations</h1>
        <Skeleton />
      </main>
    );
  const isFiltered = !isSame(filtersOf(route.value), NO_FILTERS);
  if (answer.lines.length === 0 && answer.unread === 0 && !isFiltered) return <Empty />;
  const isSearch = route.value.find.trim() !== '';
  return (
    <main class="home" aria-label={isSearch ? 'Search' : 'Conversations'}>
      <header class="home-top">
        <h1>{isSearch ? 'Search' : 'Conversations'}</h1>
        {answer.unread > 0 && (
          <span class="quiet" role="status">
            Counting: {whole(answer.unread)} left
          </span>
        )}
        <SearchAll />
      </header>
      {!isSearch && <Standing answer={answer} isFiltered={isFiltered} />}
    </main>
  );
}

/** What is stuck, and the list by state. */
function Standing({ answer, isFiltered }: { answer: Inbox; isFiltered: boolean }) {
  return (
    <>
      {broken.value.length > 0 && (
        <section aria-label="Stuck now" class="home-stuck">
          <h2>Stuck now</h2>
          <StuckList />
        </section>
      )}
      {isQueueShown.value && (
        <div class="home-queue">
          <QueuesPanel />
        </div>
      )}
      <Tabs counts={answer.counts} isCounting={answer.unread > 0} />
      <Filters />
      <Lines answer={answer} isFiltered={isFiltered} />
    </>
  );
}

/** A number that still rises ends in a plus. */
const countOf = (count: number, isCounting: boolean) => `${whole(count)}${isCounting ? '+' : ''}`;

function Tabs({ counts, isCounting }: { counts: Inbox['counts']; isCounting: boolean }) {
  const chosen = route.value.state;
  const all = STANDING_STATES.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
  return (
    <nav class="home-tabs" aria-label="States">
      <Go to={{ state: '' }} isCurrent={chosen === ''}>
        All <b>{countOf(all, isCounting)}</b>
      </Go>
      {STANDING_STATES.map((state) => (
        <Go
          key={state}
          class={`home-tab-${state} ${counts[state] ? '' : 'home-none'}`}
          to={{ state }}
          isCurrent={chosen === state}
        >
          {STATE_WORDS[state]} <b>{countOf(counts[state] ?? 0, isCounting)}</b>
        </Go>
      ))}
      <span class="spring" />
      <Go to={{ order: 'costliest' }} isCurrent={route.value.order === 'costliest'}>
        Costliest
      </Go>
    </nav>
  );
}

const KINDS = [
  ['', 'Threads too'],
  ['conversation', 'Without threads'],
  ['thread', 'Threads only'],
] as const;
const ORDERS = [
  ['', 'Most urgent first'],
  ['newest', 'Newest first'],
  ['oldest', 'Oldest first'],
] as const;

/** The filters are in the address. Typing adds no steps to the browser's history. */
function Filters() {
  const { agent, owner, since, order, of } = route.value;
  const filters = filtersOf(route.value);
  const isInDollars = inbox.value?.costs === 'dollars';
  const [isOpen, setOpen] = useState(false);
  const used = [agent, owner, since, of, order].filter(Boolean).length;
  return (
    <fieldset
      class={`home-filters ${isOpen ? '' : 'home-folded'}`}
      aria-label="Filters"
      disabled={isLost.value}
    >
      <TextFilter
        of="q"
        label="Id or words of the first message"
        placeholder="Id or first words"
        isMain={false}
      />
      <button class="button home-fold" type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filters{used > 0 && ` ${used}`}
      </button>
      <input
        type="text"
        aria-label="Agent"
        placeholder="Agent"
        value={agent ?? ''}
        onChange={(event) => go({ agent: event.currentTarget.value.trim() || null }, { replace: true })}
      />
      <input
        type="text"
        aria-label="Owner"
        placeholder="Owner"
        value={owner}
        onChange={(event) => go({ owner: event.currentTarget.value.trim() }, { replace: true })}
      />
      <Since value={since} />
      <Choice label="Kind" of={KINDS} value={of} onChange={(to) => go({ of: to })} />
      <Choice
        label="Order"
        of={[...ORDERS, ['costliest', isInDollars ? 'Costliest first' : 'Most tokens first']]}
        value={order}
        onChange={(to) => go({ order: to })}
      />
      {!isSame(filters, NO_FILTERS) && (
        <>
          <button class="button" type="button" onClick={() => go(NO_FILTERS)}>
            Clear
          </button>
          <SaveView />
        </>
      )}
      <Views />
    </fieldset>
  );
}

function SaveView() {
  const [name, setName] = useState<string | null>(null);
  if (name === null)
    return (
      <button class="button" type="button" onClick={() => setName('')}>
        Save this view
      </button>
    );
  return (
    <form
      class="home-save"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() !== '') saveView({ name: name.trim(), filters: filtersOf(route.peek()) });
        setName(null);
      }}
    >
      <input
        type="text"
        aria-label="Name of the view"
        placeholder="Name"
        maxLength={40}
        autoFocus
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <button class="button" type="submit">
        Save
      </button>
    </form>
  );
}

function Views() {
  const now = filtersOf(route.value);
  return (
    <>
      {savedViews.value.map(({ name, filters }) => (
        <span key={name} class="home-view">
          <Go to={filters} isCurrent={isSame(filters, now)}>
            {name}
          </Go>
          <button type="button" aria-label={`Remove the view ${name}`} onClick={() => removeView(name)}>
            ×
          </button>
        </span>
      ))}
    </>
  );
}

/** Rows of the first frame: more than most windows show. */
const FIRST_ROWS = 24;

function Lines({ answer, isFiltered }: { answer: Inbox; isFiltered: boolean }) {
  const { lines, counts, next, unread } = answer;
  let room = useFrames(1) === 0 ? FIRST_ROWS : Number.POSITIVE_INFINITY;
  if (lines.length === 0)
    return (
      <p class="quiet home-nothing">
        {unread > 0 ? 'Nothing found yet.' : isFiltered ? 'No conversation matches.' : ''}
      </p>
    );
  const groups = groupsOf(lines).map((group) => {
    const causes = route.value.order === '' ? byCause(group.own) : group.own.map(alone);
    const shown = causes.slice(0, room);
    room -= shown.length;
    return { ...group, shown };
  });
  return (
    <div class="home-groups">
      {groups.map(({ name, state, own, isWhole, shown }) => (
        <section key={name} aria-label={name}>
          {state && (
            <GroupHead
              state={state}
              name={name}
              count={countOf(isWhole ? own.length : counts[state], unread > 0)}
            />
          )}
          <ul>
            {shown.map((cause) =>
              isGroup(cause) ? (
                <CauseGroup key={cause.key} cause={cause} />
              ) : (
                cause.lines.map((line) => <InboxRow key={line.id} line={line} />)
              ),
            )}
            {state && !isWhole && isUrgentState(state) && own.length < counts[state] && (
              <li class="home-others">
                <Go to={{ state }}>and {whole(counts[state] - own.length)} more</Go>
              </li>
            )}
          </ul>
        </section>
      ))}
      {canGrow.value && (
        <button class="button home-more" type="button" disabled={isLost.value} onClick={showMore}>
          Show more
        </button>
      )}
      {next !== null && !canGrow.value && (
        <p class="quiet">{plural(lines.length, 'conversation')} shown; filter to find others.</p>
      )}
    </div>
  );
}

const isUrgentState = (state: StandingState) => state === 'failed' || state === 'asks';

interface Group {
  name: string;
  /** Null: lines of any state. */
  state: StandingState | null;
  own: InboxLine[];
  /** Whether the group has all of its lines. */
  isWhole: boolean;
}

/** Grouped by state only in the usual order: in others states alternate, and headings would say little. */
function groupsOf(lines: readonly InboxLine[]): Group[] {
  const { order, state: chosen } = route.value;
  if (order !== '' || chosen !== '') return [{ name: 'Found', state: null, own: [...lines], isWhole: true }];
  const isOthers = ({ may }: InboxLine) => may?.decide === false;
  const groups = STANDING_STATES.flatMap((state): Group[] => {
    const own = byDeadline(lines.filter((line) => line.state === state));
    if (!own.some(isOthers)) return [{ name: STATE_WORDS[state], state, own, isWhole: false }];
    return [
      { name: STATE_WORDS[state], state, own: own.filter((line) => !isOthers(line)), isWhole: true },
      { name: 'Needs others', state, own: own.filter(isOthers), isWhole: true },
    ];
  });
  return groups.filter(({ own }) => own.length > 0);
}

/** Lines that wait for people come in the order in which they expire. Other lines keep their order. */
function byDeadline(lines: readonly InboxLine[]): InboxLine[] {
  const due = ({ asks }: InboxLine) => asks?.deadline ?? Number.MAX_SAFE_INTEGER;
  return lines.toSorted((a, b) => due(a) - due(b));
}

function GroupHead({ state, name, count }: { state: StandingState; name: string; count: string }) {
  return (
    <h2 class={`home-group home-group-${state}`}>
      <StateIcon of={state} />
      <span aria-hidden="true">{name}</span> <span class="quiet">{count}</span>
    </h2>
  );
}

/** Three commands to copy. */
function Empty() {
  const url = `${location.origin}${base}`.replace(/\/$/, '');
  const lines = [
    ['Send your agents a message', `npx troupe send hello "Plan a small release" --url ${url} --wait`],
    ['See it in the terminal, too', `npx troupe ls --url ${url}`],
    ['The API of this page, for scripts', `curl ${url}/api/openapi.json`],
  ] as const;
  return (
    <main class="home home-empty">
      <h1>No conversations yet</h1>
      <p>A new conversation appears here, live.</p>
      <ol>
        {lines.map(([what, line]) => (
          <li key={line}>
            {what}
            <Copy text={line} />
          </li>
        ))}
      </ol>
    </main>
  );
}
