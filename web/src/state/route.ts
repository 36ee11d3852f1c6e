import { computed, signal } from '@preact/signals';
import { base } from './settings.ts';

/** The views beside home and a conversation: a path each. */
export const VIEWS = ['costs', 'routes', 'compare'] as const;
export type View = (typeof VIEWS)[number];

/** Parameters that are texts; empty for none. */
const TEXTS = [
  /** Kinds of events that are listed or searched. */
  'kind',
  /** Agents whose turns and events are listed, separated by commas. */
  'by',
  /** Words that are listed. */
  'q',
  /** The column that the turns are sorted by, after a minus the largest first; empty for the newest turn first. */
  'sort',
  /** The words of the search that has found the event; they are marked. */
  'hit',
  /** Filters of the list of conversations. `since` is one of the search, too; `of` is `conversation` or `thread`. */
  'state',
  'owner',
  'of',
  'since',
  'order',
  /** The search over all conversations: its words, and the author of what is found. */
  'find',
  'author',
  /** Turns that are compared, separated by commas: the original first, then its runs. */
  'runs',
] as const;
const NUMBERS = ['step', 'event', 'at'] as const;
/** All, in their order in an address. */
const PARAMETERS = ['tab', 'vs', 'step', 'agent', 'event', 'list', ...TEXTS, 'problems', 'at'] as const;

/** The whole state of the view is in the URL: everyone who opens the address sees the same. */
export interface Route extends Record<(typeof TEXTS)[number], string> {
  /** Null for the list of conversations. */
  conversation: string | null;
  /** Without a conversation: the list of them, or another page. `unknown`: the path leads nowhere. */
  view: '' | View | 'unknown';
  turn: string | null;
  tab: Tab;
  /** The turn that the Diff tab compares with; null for the previous one. */
  vs: string | null;
  /** Number of the model call within the turn; null for the last. */
  step: number | null;
  /** The selected agent when no turn is selected. */
  agent: string | null;
  event: number | null;
  /** What the middle column shows: the conversation for reading, its turns, or its single events. */
  list: List;
  problems: boolean;
  /** The seq at which everything is shown; null when live. */
  at: number | null;
}

export const TABS = ['state', 'prompt', 'diff', 'tools', 'events', 'raw'] as const;
export type Tab = (typeof TABS)[number];

export const LISTS = ['talk', 'turns', 'events', 'tree', 'graph'] as const;
export type List = (typeof LISTS)[number];

const NOWHERE: Route = {
  conversation: null,
  view: '',
  turn: null,
  tab: 'state',
  vs: null,
  step: null,
  agent: null,
  event: null,
  list: 'talk',
  problems: false,
  at: null,
  ...(Object.fromEntries(TEXTS.map((name) => [name, ''])) as Record<(typeof TEXTS)[number], ''>),
};

export const route = signal<Route>(parseRoute(location));
export const conversation = computed(() => route.value.conversation);

window.addEventListener('popstate', () => (route.value = parseRoute(location)));

/** Changes the address. Use `replace` for changes that should not become steps of the history, such as typing or scrubbing. */
export function go(patch: Partial<Route>, { replace = false } = {}): void {
  const next = { ...route.value, ...patch };
  const url = hrefOf(next);
  if (url === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  route.value = next;
}

/** Goes where a link with the same changes leads. */
export function goElsewhere(to: Partial<Route>): void {
  const { pathname, search } = new URL(href(to), location.href);
  go(parseRoute({ pathname, search }));
}

/** The address of the current view with changes, for links. Another conversation starts with nothing selected. */
export function href(patch: Partial<Route>): string {
  const elsewhere = patch.conversation !== undefined && patch.conversation !== route.value.conversation;
  return hrefOf({ ...(elsewhere ? NOWHERE : route.value), ...patch });
}

export function hrefOf(to: Route): string {
  const parts =
    to.conversation === null
      ? to.view === ''
        ? []
        : [to.view]
      : ['c', to.conversation, ...(to.turn ? ['t', to.turn] : [])];
  const query = new URLSearchParams();
  const set = (name: string, value: string | number | boolean | null, unless: unknown) => {
    if (value !== unless && value !== null) query.set(name, String(value));
  };
  for (const name of PARAMETERS) set(name, to[name], NOWHERE[name]);
  const search = query.toString();
  return `${base}${parts.map(encodeURIComponent).join('/')}${search && `?${search}`}`;
}

export function parseRoute({ pathname, search }: Pick<Location, 'pathname' | 'search'>): Route {
  const inside = pathname.startsWith(base) ? pathname.slice(base.length) : pathname.slice(1);
  const query = new URLSearchParams(search);
  const number = (key: string) => {
    const value = Number(query.get(key));
    return query.has(key) && Number.isInteger(value) && value >= 0 ? value : null;
  };
  return {
    ...placeOf(inside === '' ? [] : inside.replace(/\/$/, '').split('/').map(decode)),
    tab: TABS.find((each) => each === query.get('tab')) ?? NOWHERE.tab,
    list: LISTS.find((each) => each === query.get('list')) ?? NOWHERE.list,
    vs: query.get('vs'),
    agent: query.get('agent'),
    problems: query.get('problems') === 'true',
    ...(Object.fromEntries(NUMBERS.map((name) => [name, number(name)])) as Pick<
      Route,
      (typeof NUMBERS)[number]
    >),
    ...(Object.fromEntries(TEXTS.map((name) => [name, query.get(name) ?? ''])) as Pick<
      Route,
      (typeof TEXTS)[number]
    >),
  };
}

/** What the segments of a path name. `isPageOf` of `src/http/page/page.ts` knows the same ones. */
function placeOf([first, name = '', second, turn = '', ...rest]: string[]): Pick<
  Route,
  'conversation' | 'view' | 'turn'
> {
  const isTurn = second === 't' && turn !== '' && rest.length === 0;
  if (first === undefined) return { conversation: null, view: '', turn: null };
  if (first === 'c' && name !== '' && (second === undefined || isTurn))
    return { conversation: name, view: '', turn: isTurn ? turn : null };
  const view = name === '' ? VIEWS.find((each) => each === first) : undefined;
  return { conversation: null, view: view ?? 'unknown', turn: null };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
