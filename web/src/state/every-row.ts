import type { Row } from '../../../src/library/projection/model.ts';
import { api } from './api.ts';
import { messageOf } from '../shared/format.ts';
import { changes, type RowSource } from './row-source.ts';

const PAGE_ROWS = 200;
const MAX_PAGES = 15;

/**
 * All events of a conversation. Seqs have no gaps, so the position of a row is known before the row is loaded. Keeps a few pages.
 */
export function everyRow(conversation: string, start: number): RowSource {
  const { version, problem, changed } = changes();
  /** Pages by number, least recently used first. */
  const pages = new Map<number, readonly Row[]>();
  /** Visible pages, some of which are not loaded yet. */
  let wanted: number[] = [];
  let isAsking = false;
  let head = start;
  let isClosed = false;

  const use = (number: number) => {
    const page = pages.get(number);
    if (!page) return;
    pages.delete(number);
    pages.set(number, page);
  };
  const keep = (number: number, rows: readonly Row[]) => {
    pages.set(number, rows);
    for (const oldest of pages.keys()) {
      if (pages.size <= MAX_PAGES) break;
      pages.delete(oldest);
    }
  };
  const isWhole = (number: number) =>
    (pages.get(number)?.length ?? 0) >= Math.min(PAGE_ROWS, head - number * PAGE_ROWS);
  /** Fetches one page at a time, so that pages that were scrolled past are not fetched. */
  const fetchWanted = async () => {
    if (isAsking) return;
    isAsking = true;
    for (let next = wanted.shift(); next !== undefined && !isClosed; next = wanted.shift()) {
      if (!isWhole(next)) await fetchPage(next);
    }
    isAsking = false;
  };
  const fetchPage = async (number: number) => {
    try {
      const { rows } = await api.rows(conversation, { after: number * PAGE_ROWS, limit: PAGE_ROWS });
      problem.value = null;
      if (rows.length >= (pages.get(number)?.length ?? 0)) keep(number, rows);
      if (!isClosed) changed();
    } catch (error) {
      problem.value = messageOf(error);
      wanted = [];
    }
  };
  return {
    version,
    problem,
    count: () => head,
    lineAt: (index) => pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS] ?? null,
    indexOf: (seq) => (seq <= head ? seq - 1 : -1),
    need(first, end) {
      const from = Math.floor(first / PAGE_ROWS);
      const until = Math.ceil(Math.min(end, head) / PAGE_ROWS);
      wanted = [];
      for (let number = from; number < until; number++) {
        use(number);
        if (!isWhole(number)) wanted.push(number);
      }
      if (wanted.length > 0) void fetchWanted();
    },
    arrived(rows, now) {
      for (const row of rows) {
        const number = Math.floor((row.seq - 1) / PAGE_ROWS);
        const page = pages.get(number) ?? [];
        if (page.length === (row.seq - 1) % PAGE_ROWS) keep(number, [...page, row]);
      }
      head = now;
      changed();
    },
    seek: () => {},
    unfold: () => {},
    close: () => (isClosed = true),
  };
}
