import * as z from 'zod';
import type { Clock } from '../../clock.ts';
import { Calibration, observe } from '../../context/budget/calibrate.ts';
import { type ModelFacts, NOTHING_KNOWN, type UsageAnchor } from '../../context/index.ts';
import { TroupeError } from '../../errors.ts';
import type { AgentId, TenantId } from '../../events/index.ts';
import type { Store } from '../../store/store.ts';

/**
 * What is known of a tenant's models: how they count, and windows that providers named when they refused a request.
 * Kept in memory and, so that no process has to learn it again, as notes in the store.
 *  B1  Nothing depends on it: what cannot be read is as if it had never been learnt, and a failure is a warning.
 *  B2  No turn waits for a write, and a model's note is written at most every 20 s, or when a window was learnt.
 *  B3  Of two processes that learn at once neither is lost: who comes second adds its own reports to the other's note.
 */
export interface CalibrationBook {
  /** Waits for the store the first time, and once a minute for what others have learnt. */
  get(tenant: TenantId, name: ModelName): Promise<ModelFacts>;
  observe(tenant: TenantId, name: ModelName, report: UsageAnchor): ModelFacts;
  learnWindow(tenant: TenantId, name: ModelName, window: number): ModelFacts;
  /**
   * What an agent's model says of its usage is not believed, and why; null: it says nothing of it. Told once for each
   * agent, however often it is so.
   */
  doubt(tenant: TenantId, agent: AgentId, why: string | null): void;
  /** Writes what is not written yet; for an orderly end. Never rejects. */
  flush(): Promise<void>;
}

export interface ModelName {
  provider: string;
  model: string;
}

const READ_EVERY_MS = 60_000;
const WRITE_EVERY_MS = 20_000;
/** Reports that wait for a write; in a store that is away for long, older ones are forgotten. */
const MAX_WAITING = 64;
/** Pages in memory; the one that was made first goes first. */
const MAX_PAGES = 1_000;
/** Of agents whose usage is doubted; beyond so many of them nothing is told. */
const MAX_DOUBTED = 1_000;
/** Bounds a loop in which every round another process was faster. */
const MAX_ROUNDS = 5;

const Note = z.object({ calibration: Calibration, window: z.int().positive().nullable() });

/** What this process has learnt and not yet written. */
interface News {
  reports: readonly UsageAnchor[];
  window: number | null;
}
const NO_NEWS: News = { reports: [], window: null };

interface Page {
  tenant: TenantId;
  key: string;
  /** The note with the news on top. */
  facts: ModelFacts;
  /** The note as it was last seen, and what it says; null if there is none. */
  note: string | null;
  news: News;
  readAt: number;
  writtenAt: number;
  reading: Promise<void> | null;
  writing: Promise<void> | null;
}

export function createCalibrationBook({
  store,
  clock,
  onWarning,
}: {
  store: Pick<Store, 'get' | 'compareAndSet'>;
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
}): CalibrationBook {
  const pages = new Map<string, Page>();
  const doubted = new Set<string>();
  let isFailing = false;

  function pageOf(tenant: TenantId, { provider, model }: ModelName): Page {
    const key = `model ${JSON.stringify([provider, model])}`;
    const id = `${tenant} ${key}`;
    const known = pages.get(id);
    if (known) return known;
    const never = Number.NEGATIVE_INFINITY;
    const times = { readAt: never, writtenAt: never, reading: null, writing: null };
    const page: Page = { tenant, key, facts: NOTHING_KNOWN, note: null, news: NO_NEWS, ...times };
    if (pages.size >= MAX_PAGES) forgetOne();
    pages.set(id, page);
    return page;
  }

  function forgetOne(): void {
    for (const [id, { news, writing }] of pages) {
      if (news !== NO_NEWS || writing) continue;
      pages.delete(id);
      return;
    }
  }

  function isDue(at: number, every: number): boolean {
    return clock.monotonic() - at >= every;
  }

  async function read(page: Page): Promise<void> {
    page.readAt = clock.monotonic();
    await attempt(async () => see(page, await store.get(page.tenant, page.key)));
    page.reading = null;
  }

  function see(page: Page, note: string | null): void {
    page.note = note;
    page.facts = withNews(factsIn(note), page.news);
  }

  /** In the background. What is learnt meanwhile waits for the next one. */
  function write(page: Page): Promise<void> {
    page.writing ??= (async () => {
      page.writtenAt = clock.monotonic();
      const { news } = page;
      if (await attempt(() => merge(page, news))) {
        page.news = without(page.news, news);
        see(page, page.note);
      }
      page.writing = null;
    })();
    return page.writing;
  }

  async function merge(page: Page, news: News): Promise<void> {
    for (let round = 1; round <= MAX_ROUNDS; round += 1) {
      const { tenant, key, note } = page;
      const next = JSON.stringify(withNews(factsIn(note), news));
      page.note = await store.compareAndSet(tenant, key, note, next);
      if (page.note === next) return;
    }
    throw new Error(`the note of ${page.key} changes faster than it can be written`);
  }

  /** One warning for a row of failures. */
  async function attempt(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      isFailing = false;
      return true;
    } catch (error) {
      if (!isFailing) onWarning(error, 'what is known of models');
      isFailing = true;
      return false;
    }
  }

  return {
    async get(tenant, name) {
      const page = pageOf(tenant, name);
      if (isDue(page.readAt, READ_EVERY_MS)) page.reading ??= read(page);
      await page.reading;
      return page.facts;
    },
    observe(tenant, name, report) {
      const page = pageOf(tenant, name);
      page.facts = { ...page.facts, calibration: observe(page.facts.calibration, report) };
      // A copy, since what was written is told from what was not by identity.
      page.news = { ...page.news, reports: [...page.news.reports, { ...report }].slice(-MAX_WAITING) };
      if (isDue(page.writtenAt, WRITE_EVERY_MS)) void write(page);
      return page.facts;
    },
    learnWindow(tenant, name, window) {
      const page = pageOf(tenant, name);
      page.facts = { ...page.facts, window };
      page.news = { ...page.news, window };
      // A write under way may be too far to take it along.
      void (page.writing ?? Promise.resolve()).then(() => write(page));
      return page.facts;
    },
    doubt(tenant, agent, why) {
      const who = `${tenant}/${agent}`;
      if (doubted.has(who) || doubted.size >= MAX_DOUBTED) return;
      doubted.add(who);
      const message =
        why === null
          ? 'its server tells no usage with the answers: tokens are counted here, which calibrates nothing, and what came from a cache is not known'
          : `its model's usage is not believed, and what was counted here is taken instead: ${why}`;
      onWarning(new TroupeError('provider_invalid_reply', message, { tenant, agent }), `usage of @${agent}`);
    },
    async flush() {
      await Promise.all(
        [...pages.values()].map(async (page) => {
          await page.writing;
          if (page.news !== NO_NEWS) await write(page);
        }),
      );
    },
  };
}

/** A note that makes no sense is as good as none. */
function factsIn(note: string | null): ModelFacts {
  try {
    return Note.parse(JSON.parse(note ?? 'null'));
  } catch {
    return NOTHING_KNOWN;
  }
}

function withNews({ calibration, window }: ModelFacts, news: News): ModelFacts {
  return { calibration: news.reports.reduce(observe, calibration), window: news.window ?? window };
}

function without(now: News, written: News): News {
  const old = new Set(written.reports);
  const reports = now.reports.filter((report) => !old.has(report));
  const window = now.window === written.window ? null : now.window;
  return reports.length === 0 && window === null ? NO_NEWS : { reports, window };
}
