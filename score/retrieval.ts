import { createReadStream, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  answersFirst,
  createSearchIndex,
  RANK_SETTINGS,
  type RankSettings,
} from '../src/context/retrieve/search.ts';
import type { AgentId, ConversationId, Event, TenantId } from '../src/events/index.ts';
import { importTranscript } from '../src/library/import/index.ts';
import { plainBm25 } from './plain-bm25.ts';

/**
 * Share of the evidence for a question that a search finds, on the long dialogues of LoCoMo. Documents are single
 * turns; recall@k is the share of a question's evidence turns among the first k, averaged over the questions that
 * have evidence (all five categories, including the adversarial ones, which name the wrong speaker on purpose).
 */
const DATA = fileURLToPath(new URL('../../shared/data/locomo/', import.meta.url));
export const LOCOMO_FILES = ['26.json', '30.json', '41.json'] as const;
const DEPTHS = [5, 10, 20] as const;

/** The categories of LoCoMo, by their numbers. */
export const CATEGORIES = [
  '',
  'several events',
  'temporal',
  'inference',
  'one event',
  'adversarial',
] as const;
export type Category = (typeof CATEGORIES)[number];

export interface RetrievalRow {
  method: string;
  /** A file, or `mean` over the files. */
  file: string;
  /** '' for all questions. Categories are averaged over questions, all questions over files. */
  category: Category;
  k5: number;
  k10: number;
  k20: number;
  questions: number;
}

export interface Dialogue {
  file: string;
  log: Event[];
  questions: { text: string; category: number; evidence: number[] }[];
}

/** The seqs found for a question, best first. */
export type Searcher = (query: string, limit: number) => number[] | Promise<number[]>;

const METHODS: Record<string, (log: readonly Event[]) => Searcher> = {
  'BM25 on turns': (log) => plainBm25(log, 0),
  'BM25 on turns +-1': (log) => plainBm25(log, 1),
  troupe: (log) => searcherWith(log, RANK_SETTINGS),
};

export async function scoreRetrieval(): Promise<RetrievalRow[]> {
  const dialogues = await readDialogues();
  const rows = Object.entries(METHODS).map(async ([method, build]) =>
    withMeans(await scoreAll(method, dialogues, build)),
  );
  return (await Promise.all(rows)).flat();
}

export function readDialogues(): Promise<Dialogue[]> {
  return Promise.all(LOCOMO_FILES.map(readDialogue));
}

/** The rows of every dialogue. */
export async function scoreAll(
  method: string,
  dialogues: readonly Dialogue[],
  build: (log: readonly Event[]) => Searcher,
): Promise<RetrievalRow[]> {
  const rows = await Promise.all(
    dialogues.map((dialogue) => scoreOne(method, dialogue, build(dialogue.log))),
  );
  return rows.flat();
}

/** Every combination of these is tried. */
const GRID: { [K in keyof RankSettings]?: readonly RankSettings[K][] } = {
  question: [0.6, 0.8],
  onward: [0.4, 0.6],
  back: [0.3, 0.5],
  fading: [0.5, 0.7],
  b: [0.5, 0.75],
  named: [1.2, 1.3, 1.5],
};

export interface HeldOut {
  rows: RetrievalRow[];
  /** The settings chosen for each file on the other files. */
  chosen: { file: string; settings: RankSettings }[];
}

/**
 * Each file with settings chosen on the two others: the expected score on an unseen dialogue. Chosen is the centre of the
 * best region (its own total and those of all that differ in one value), because the best single one is best by
 * chance: a value moves a total by a few questions.
 */
export async function crossValidate(): Promise<HeldOut> {
  const dialogues = await readDialogues();
  const tried: { settings: RankSettings; rows: RetrievalRow[] }[] = [];
  for (const settings of mixtures()) {
    const rows = await scoreAll('cross-validated', dialogues, (log) => searcherWith(log, settings));
    tried.push({ settings, rows });
  }
  const chosen = dialogues.flatMap(({ file }) => {
    const others = tried.map(({ rows }) => total(rows.filter((row) => row.file !== file)));
    const smoothed = tried.map(({ settings }) => {
      const near = others.filter((_, at) => isNear(settings, tried[at]?.settings));
      return near.reduce((sum, each) => sum + each, 0) / near.length;
    });
    const best = tried[smoothed.indexOf(Math.max(...smoothed))];
    return best ? [{ file, ...best }] : [];
  });
  const rows = chosen.flatMap((each) => each.rows.filter(({ file }) => file === each.file));
  return { rows: withMeans(rows), chosen: chosen.map(({ file, settings }) => ({ file, settings })) };
}

/** Whether two settings differ in one value of the grid at most. */
function isNear(one: RankSettings, other: RankSettings | undefined): boolean {
  const keys = Object.keys(GRID) as (keyof RankSettings)[];
  return keys.filter((key) => one[key] !== other?.[key]).length <= 1;
}

function mixtures(): RankSettings[] {
  let mixed: RankSettings[] = [RANK_SETTINGS];
  for (const [key, values] of Object.entries(GRID)) {
    mixed = mixed.flatMap((settings) => values.map((value) => ({ ...settings, [key]: value })));
  }
  return mixed;
}

function total(rows: readonly RetrievalRow[]): number {
  const whole = rows.filter(({ category }) => category === '');
  return whole.reduce((sum, { k5, k10, k20 }) => sum + k5 + k10 + k20, 0);
}

export function searcherWith(log: readonly Event[], settings: RankSettings): Searcher {
  const index = createSearchIndex(null, settings);
  index.add(log);
  return (query, limit) =>
    answersFirst(index.search(query, limit), (seq) => index.answerTo(seq))
      .slice(0, limit)
      .map(({ seq }) => seq);
}

/** A row for all questions, and one for each category that the dialogue has. */
async function scoreOne(
  method: string,
  { file, questions }: Dialogue,
  search: Searcher,
): Promise<RetrievalRow[]> {
  const scored = await Promise.all(
    questions.map(async ({ text, category, evidence }) => {
      const found = await search(text, Math.max(...DEPTHS));
      const recallAt = (depth: number) => {
        const top = new Set(found.slice(0, depth));
        return evidence.filter((seq) => top.has(seq)).length / evidence.length;
      };
      return { category: CATEGORIES[category] ?? '', recalls: DEPTHS.map(recallAt) };
    }),
  );
  return CATEGORIES.flatMap((category) => {
    const own = category === '' ? scored : scored.filter((each) => each.category === category);
    const [k5 = 0, k10 = 0, k20 = 0] = DEPTHS.map((_, at) =>
      mean(own.map(({ recalls }) => recalls[at] ?? 0)),
    );
    return own.length === 0 ? [] : [{ method, file, category, k5, k10, k20, questions: own.length }];
  });
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Adds the means over the files of one method. */
export function withMeans(rows: readonly RetrievalRow[]): RetrievalRow[] {
  const means = CATEGORIES.flatMap((category) => {
    const own = rows.filter((row) => row.category === category);
    const questions = own.reduce((sum, row) => sum + row.questions, 0);
    const weightOf = (row: RetrievalRow) => (category === '' ? 1 / own.length : row.questions / questions);
    const weighted = (key: 'k5' | 'k10' | 'k20') =>
      own.reduce((sum, row) => sum + row[key] * weightOf(row), 0);
    const { method } = own[0] ?? { method: '' };
    const recalls = { k5: weighted('k5'), k10: weighted('k10'), k20: weighted('k20') };
    return own.length === 0 ? [] : [{ method, file: 'mean', category, ...recalls, questions }];
  });
  return [...rows, ...means];
}

const LOG = { tenant: 'default' as TenantId, conversation: 'locomo' as ConversationId };

interface LocomoFile {
  qa: { question: string; category: number; evidence?: string[] }[];
  [session: string]: unknown;
}

async function readDialogue(file: string): Promise<Dialogue> {
  const source = `${DATA}${file}`;
  const log: Event[] = [];
  const options = { agent: 'assistant' as AgentId, fileName: file };
  for await (const { draft, at } of importTranscript(createReadStream(source), options)) {
    if (draft) log.push({ ...draft, ...LOG, seq: log.length + 1, at: at ?? 0, tokens: 0 });
  }
  const sample = JSON.parse(readFileSync(source, 'utf8')) as LocomoFile;
  const seqs = new Map(turnIds(sample).map((id, index) => [id, index + 1]));
  if (seqs.size !== log.length) {
    throw new Error(`${file}: ${seqs.size} turns were imported as ${log.length} events`);
  }
  const questions = sample.qa.map(({ question, category, evidence = [] }) => {
    // One entry may name several turns: "D8:6; D9:17".
    const ids = evidence.flatMap((entry) => entry.split(/[\s;,]+/));
    return { text: question, category, evidence: [...new Set(ids.flatMap((id) => seqs.get(id) ?? []))] };
  });
  return { file, log, questions: questions.filter(({ evidence }) => evidence.length > 0) };
}

/** The ids of the turns in the order in which the importer writes them. */
function turnIds(sample: LocomoFile): string[] {
  return Object.keys(sample)
    .flatMap((key) => Number(/^session_(\d+)$/.exec(key)?.[1] ?? []))
    .filter((number) => number > 0)
    .toSorted((one, other) => one - other)
    .flatMap((number) => (sample[`session_${number}`] as { dia_id: string }[]).map((turn) => turn.dia_id));
}
