import { computed, signal } from '@preact/signals';
import { base } from './settings.ts';

/** The whole state of the view is in the URL: everyone who opens the address sees the same. */
export interface Route {
  /** Null for the list of conversations. */
  conversation: string | null;
  /** Without a conversation: '' for the list of conversations, or another page. */
  view: '' | 'costs';
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
  kind: string;
  /** Agents whose turns and events are listed, separated by commas; empty for all. */
  by: string;
  q: string;
  /** The column by which turns are sorted; a minus before it puts the largest first; empty puts the newest turn first. */
  sort: string;
  problems: boolean;
  /** Words of the search that found the event. They are marked. */
  hit: string;
  /** Filters of the list of conversations; empty for all. */
  state: string;
  owner: string;
  since: string;
  order: string;
  /** `conversation` or `thread`. */
  of: string;
  /** Search text for all conversations. */
  find: string;
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
  kind: '',
  by: '',
  q: '',
  sort: '',
  problems: false,
  hit: '',
  state: '',
  owner: '',
  of: '',
  since: '',
  order: '',
  find: '',
  at: null,
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
  set('tab', to.tab, NOWHERE.tab);
  set('vs', to.vs, null);
  set('step', to.step, null);
  set('agent', to.agent, null);
  set('event', to.event, null);
  set('list', to.list, NOWHERE.list);
  set('kind', to.kind, '');
  set('by', to.by, '');
  set('q', to.q, '');
  set('sort', to.sort, '');
  set('problems', to.problems, false);
  set('hit', to.hit, '');
  for (const name of ['state', 'owner', 'since', 'order', 'of'] as const) set(name, to[name], '');
  set('find', to.find, '');
  set('at', to.at, null);
  const search = query.toString();
  return `${base}${parts.map(encodeURIComponent).join('/')}${search && `?${search}`}`;
}

export function parseRoute({ pathname, search }: Pick<Location, 'pathname' | 'search'>): Route {
  const inside = pathname.startsWith(base) ? pathname.slice(base.length) : pathname.slice(1);
  const [first, name = '', second, turn = ''] = inside.split('/').map(decode);
  const query = new URLSearchParams(search);
  const text = (key: string) => query.get(key) ?? '';
  const number = (key: string) => {
    const value = Number(query.get(key));
    return query.has(key) && Number.isInteger(value) && value >= 0 ? value : null;
  };
  const tab = TABS.find((each) => each === query.get('tab')) ?? NOWHERE.tab;
  return {
    conversation: first === 'c' && name !== '' ? name : null,
    view: first === 'costs' ? 'costs' : '',
    turn: first === 'c' && second === 't' && turn !== '' ? turn : null,
    tab,
    vs: query.get('vs'),
    step: number('step'),
    agent: query.get('agent'),
    event: number('event'),
    list: LISTS.find((each) => each === query.get('list')) ?? NOWHERE.list,
    kind: text('kind'),
    by: text('by'),
    q: text('q'),
    sort: text('sort'),
    problems: query.get('problems') === 'true',
    hit: text('hit'),
    state: text('state'),
    owner: text('owner'),
    of: text('of'),
    since: text('since'),
    order: text('order'),
    find: text('find'),
    at: number('at'),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
