import { signal } from '@preact/signals';
import { remember, remembered } from './remember.ts';
import type { Route } from './route.ts';

type Filters = Pick<Route, 'state' | 'agent' | 'owner' | 'since' | 'order' | 'of' | 'q'>;

/** A named set of filters of the inbox, kept in this browser. */
export interface SavedView {
  name: string;
  filters: Filters;
}

export const NO_FILTERS: Filters = { state: '', agent: null, owner: '', since: '', order: '', of: '', q: '' };

const MAX_VIEWS = 20;

export const savedViews = signal<readonly SavedView[]>(given());

function given(): SavedView[] {
  try {
    const read: unknown = JSON.parse(remembered('views') ?? '[]');
    return Array.isArray(read) ? read.flatMap(viewOf).slice(0, MAX_VIEWS) : [];
  } catch {
    return [];
  }
}

function viewOf(read: unknown): SavedView[] {
  const { name, filters } = (read ?? {}) as Partial<SavedView>;
  if (typeof name !== 'string' || typeof filters !== 'object' || filters === null) return [];
  const { state, agent, owner, since, order, of, q } = filters;
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  return [
    {
      name,
      filters: {
        state: text(state),
        agent: text(agent) || null,
        owner: text(owner),
        of: text(of),
        since: text(since),
        order: text(order),
        q: text(q),
      },
    },
  ];
}

export function filtersOf({ state, agent, owner, since, order, of, q }: Route): Filters {
  return { state, agent, owner, since, order, of, q };
}

export function isSame(a: Filters, b: Filters): boolean {
  return (Object.keys(NO_FILTERS) as (keyof Filters)[]).every((key) => a[key] === b[key]);
}

/** Replaces a view of the same name. */
export function saveView(view: SavedView): void {
  keep([...savedViews.peek().filter(({ name }) => name !== view.name), view].slice(-MAX_VIEWS));
}

export function removeView(name: string): void {
  keep(savedViews.peek().filter((view) => view.name !== name));
}

function keep(views: readonly SavedView[]): void {
  savedViews.value = views;
  remember('views', views.length === 0 ? null : JSON.stringify(views));
}
