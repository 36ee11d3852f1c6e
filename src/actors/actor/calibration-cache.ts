import * as z from 'zod';
import type { Clock } from '../../base/clock.ts';
import { Calibration, observe } from '../../context/budget/tokens.ts';
import { type ModelFacts, NOTHING_KNOWN, type UsageAnchor } from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import type { AgentId, TenantId } from '../../events/index.ts';
import type { Store } from '../../store/store.ts';

/**
 * Facts learnt about a tenant's models: how they count tokens, windows that providers named when they refused a request, and
 * images that they refused. Kept in memory, and in the store as one entry per model, so that other processes need not learn
 * them again.
 *  B1  Nothing depends on it: an unreadable entry counts as missing, and a failure is only a warning.
 *  B2  No turn waits for a write. A model's entry is written at most every 20 s, and after each refusal with a new fact.
 *  B3  If two processes learn at the same time, nothing is lost: the second adds its own reports to the entry of the first.
 */
export interface CalibrationCache {
  /** The facts about a model. Waits for the store on the first call, and once a minute to learn from other processes. */
  get(tenant: TenantId, name: ModelName): Promise<ModelFacts>;
  observe(tenant: TenantId, name: ModelName, report: UsageAnchor): ModelFacts;
  learnWindow(tenant: TenantId, name: ModelName, window: number): ModelFacts;
  learnRefused(tenant: TenantId, name: ModelName, images: readonly string[]): ModelFacts;
  /**
   * Warns once per agent that the usage reported by its model is not trusted. `why`: the reason; null: none is reported.
   */
  doubt(tenant: TenantId, agent: AgentId, why: string | null): void;
  /** Writes all unwritten facts, for an orderly shutdown. Never rejects. */
  flush(): Promise<void>;
}

interface ModelName {
  provider: string;
  model: string;
}

const READ_EVERY_MS = 60_000;
const WRITE_EVERY_MS = 20_000;
/** Maximum reports that wait for a write. While the store is unavailable, older ones are dropped. */
const MAX_WAITING = 64;
const MAX_PAGES = 1_000;
/** Maximum agents with a warning about their usage. Further ones get none. */
const MAX_DOUBTED = 1_000;
/** Maximum attempts of a write to which another process is first each time. */
const MAX_ROUNDS = 5;

/** Maximum refused images kept per model. A forgotten image is refused once more. */
const MAX_REFUSED = 200;

const Note = z.object({
  calibration: Calibration,
  window: z.int().positive().nullable(),
  refused: z.array(z.string()).default([]),
});

interface News {
  reports: readonly UsageAnchor[];
  window: number | null;
  refused: readonly string[];
}
const NO_NEWS: News = { reports: [], window: null, refused: [] };

interface Page {
  tenant: TenantId;
  key: string;
  /** The facts of the stored entry, with the unwritten ones added. */
  facts: ModelFacts;
  /** The entry as last read; null if there is none. */
  note: string | null;
  news: News;
  readAt: number;
  writtenAt: number;
  reading: Promise<void> | null;
  writing: Promise<void> | null;
}

interface BookDeps {
  store: Pick<Store, 'get' | 'compareAndSet'>;
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
}

export function createCalibrationCache(deps: BookDeps): CalibrationCache {
  const { clock, onWarning } = deps;
  const pages = createPages();
  const { read, write } = createPageStorage(deps);
  const doubted = new Set<string>();

  function learn(tenant: TenantId, name: ModelName, told: Partial<News>): ModelFacts {
    const page = pages.of(tenant, name);
    const news = { ...NO_NEWS, ...told };
    page.facts = withNews(page.facts, news);
    page.news = { ...page.news, ...told, refused: added(page.news.refused, news.refused) };
    // A running write may already have copied the unwritten facts without this one.
    void (page.writing ?? Promise.resolve()).then(() => write(page));
    return page.facts;
  }

  function isDue(at: number, every: number): boolean {
    return clock.monotonic() - at >= every;
  }

  return {
    async get(tenant, name) {
      const page = pages.of(tenant, name);
      if (isDue(page.readAt, READ_EVERY_MS)) page.reading ??= read(page);
      await page.reading;
      return page.facts;
    },
    observe(tenant, name, report) {
      const page = pages.of(tenant, name);
      page.facts = { ...page.facts, calibration: observe(page.facts.calibration, report) };
      // The report is copied, because `without` distinguishes written reports from new ones by object identity.
      page.news = { ...page.news, reports: [...page.news.reports, { ...report }].slice(-MAX_WAITING) };
      if (isDue(page.writtenAt, WRITE_EVERY_MS)) void write(page);
      return page.facts;
    },
    learnWindow: (tenant, name, window) => learn(tenant, name, { window }),
    learnRefused: (tenant, name, refused) => learn(tenant, name, { refused }),
    doubt(tenant, agent, why) {
      const who = `${tenant}/${agent}`;
      if (doubted.has(who) || doubted.size >= MAX_DOUBTED) return;
      doubted.add(who);
      const message =
        why === null
          ? 'its model server reports no usage: tokens are counted locally and not calibrated, and cached input is unknown'
          : `its model's usage is not trusted, so the local token count is used instead: ${why}`;
      onWarning(new TroupeError('provider_invalid_reply', message, { tenant, agent }), `usage of @${agent}`);
    },
    async flush() {
      await Promise.all(
        pages.all().map(async (page) => {
          await page.writing;
          if (page.news !== NO_NEWS) await write(page);
        }),
      );
    },
  };
}

function createPages() {
  const pages = new Map<string, Page>();

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

  return { of: pageOf, all: () => [...pages.values()] };
}

/** Reads and writes the entries of pages. A failure is only a warning. */
function createPageStorage({ store, clock, onWarning }: BookDeps) {
  let isFailing = false;

  async function read(page: Page): Promise<void> {
    page.readAt = clock.monotonic();
    await attempt(async () => see(page, await store.get(page.tenant, page.key)));
    page.reading = null;
  }

  function see(page: Page, note: string | null): void {
    page.note = note;
    page.facts = withNews(factsIn(note), page.news);
  }

  /** Writes a page in the background. Facts learnt meanwhile wait for the next write. */
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
    throw new Error(`${page.key} changes faster than it can be written`);
  }

  /** Runs `work`. Warns once for a series of failures. */
  async function attempt(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      isFailing = false;
      return true;
    } catch (error) {
      if (!isFailing) onWarning(error, 'learnt facts of models');
      isFailing = true;
      return false;
    }
  }

  return { read, write };
}

/** The facts of an entry. An unreadable entry counts as missing. */
function factsIn(note: string | null): ModelFacts {
  try {
    return Note.parse(JSON.parse(note ?? 'null'));
  } catch {
    return NOTHING_KNOWN;
  }
}

function withNews({ calibration, window, refused }: ModelFacts, news: News): ModelFacts {
  return {
    calibration: news.reports.reduce(observe, calibration),
    window: news.window ?? window,
    refused: added(refused, news.refused),
  };
}

function added(before: readonly string[], more: readonly string[]): readonly string[] {
  return more.length === 0 ? before : [...new Set([...before, ...more])].slice(-MAX_REFUSED);
}

function without(now: News, written: News): News {
  const old = new Set(written.reports);
  const reports = now.reports.filter((report) => !old.has(report));
  const window = now.window === written.window ? null : now.window;
  const refused = now.refused.filter((image) => !written.refused.includes(image));
  const isEmpty = reports.length + refused.length === 0 && window === null;
  return isEmpty ? NO_NEWS : { reports, window, refused };
}
