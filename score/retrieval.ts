import { createReadStream, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  answersFirst,
  createSearchIndex,
  SEARCH_SETTINGS,
  type SearchSettings,
} from '../src/context/retrieve/search-index.ts';
import type { AgentId, ConversationId, Event, TenantId } from '../src/events/index.ts';
import { importTranscript } from '../src/import/index.ts';
import { plainBm25 } from './plain-bm25.ts';

/**
 * Share of the evidence for a question that a search finds, on the long dialogues of LoCoMo. Documents are single
 * turns; recall@k is the share of a question's evidence turns among the first k, averaged over the questions that
 * have evidence (all five categories, including the adversarial ones, which name the wrong speaker on purpose).
 */
const DATA = fileURLToPath(new URL('../../shared/data/locomo/', import.meta.url));
export const LOCOMO_FILES = ['26.json', '30.json', '41.json'] as const;
const DEPTHS = [5, 10, 20] as const;

export interface RetrievalRow {
  method: string;
  /** A file, or `mean` over the files. */
  file: string;
  k5: number;
  k10: number;
  k20: number;
  questions: number;
}

interface Dialogue {
  file: string;
  log: Event[];
  questions: { text: string; evidence: number[] }[];
}

/** The seqs found for a question, best first. */
type Searcher = (query: string, limit: number) => number[];

const METHODS: Record<string, (log: readonly Event[]) => Searcher> = {
  'BM25 on turns': (log) => plainBm25(log, 0),
  'BM25 on turns +-1': (log) => plainBm25(log, 1),
  troupe: (log) => searcherWith(log, SEARCH_SETTINGS),
};

export async function scoreRetrieval(): Promise<RetrievalRow[]> {
  const dialogues = await Promise.all(LOCOMO_FILES.map(readDialogue));
  return Object.entries(METHODS).flatMap(([method, build]) => {
    const rows = dialogues.map((dialogue) => scoreOne(method, dialogue, build(dialogue.log)));
    return [...rows, meanOf(method, rows)];
  });
}

/** Every combination of these is tried. */
const GRID = {
  near: [
    { onward: [0.5, 0.25], back: [0.5, 0.25] },
    { onward: [0.7, 0.4], back: [0.7, 0.4] },
    { onward: [0.8, 0.5], back: [0.6, 0.3] },
    { onward: [1, 0.6], back: [0.4, 0.2] },
    { onward: [0.7], back: [0.7] },
  ],
  k1: [0.9, 1.2, 1.5],
  b: [0.5, 0.75],
  named: [1.2, 1.3, 1.5],
};

/** Each file with the settings that are best for the two others: the expected score on an unseen dialogue. */
export async function crossValidate(): Promise<(RetrievalRow & { settings: SearchSettings })[]> {
  const dialogues = await Promise.all(LOCOMO_FILES.map(readDialogue));
  const tried = mixtures().map((settings) => ({
    settings,
    rows: dialogues.map((dialogue) =>
      scoreOne('cross-validated', dialogue, searcherWith(dialogue.log, settings)),
    ),
  }));
  const chosen = dialogues.flatMap(({ file }) => {
    const others = (rows: readonly RetrievalRow[]) => rows.filter((row) => row.file !== file);
    const best = tried.toSorted((one, other) => total(others(other.rows)) - total(others(one.rows)))[0];
    const row = best?.rows.find((each) => each.file === file);
    return best && row ? [{ ...row, settings: best.settings }] : [];
  });
  return [...chosen, { ...meanOf('cross-validated', chosen), settings: SEARCH_SETTINGS }];
}

function mixtures(): SearchSettings[] {
  return GRID.near.flatMap((near) =>
    GRID.k1.flatMap((k1) =>
      GRID.b.flatMap((b) => GRID.named.map((named) => ({ ...SEARCH_SETTINGS, ...near, k1, b, named }))),
    ),
  );
}

function total(rows: readonly RetrievalRow[]): number {
  return rows.reduce((sum, { k5, k10, k20 }) => sum + k5 + k10 + k20, 0);
}

function searcherWith(log: readonly Event[], settings: SearchSettings): Searcher {
  const index = createSearchIndex(null, settings);
  index.add(log);
  return (query, limit) =>
    answersFirst(index.search(query, limit), index)
      .slice(0, limit)
      .map(({ seq }) => seq);
}

function scoreOne(method: string, { file, questions }: Dialogue, search: Searcher): RetrievalRow {
  const sums = DEPTHS.map(() => 0);
  for (const { text, evidence } of questions) {
    const found = search(text, Math.max(...DEPTHS));
    for (const [index, depth] of DEPTHS.entries()) {
      const top = new Set(found.slice(0, depth));
      sums[index] = (sums[index] ?? 0) + evidence.filter((seq) => top.has(seq)).length / evidence.length;
    }
  }
  const [k5 = 0, k10 = 0, k20 = 0] = sums.map((sum) => sum / questions.length);
  return { method, file, k5, k10, k20, questions: questions.length };
}

function meanOf(method: string, rows: readonly RetrievalRow[]): RetrievalRow {
  const mean = (key: 'k5' | 'k10' | 'k20') => rows.reduce((sum, row) => sum + row[key], 0) / rows.length;
  const questions = rows.reduce((sum, row) => sum + row.questions, 0);
  return { method, file: 'mean', k5: mean('k5'), k10: mean('k10'), k20: mean('k20'), questions };
}

const LOG = { tenant: 'default' as TenantId, conversation: 'locomo' as ConversationId };

interface LocomoFile {
  qa: { question: string; evidence?: string[] }[];
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
  const questions = sample.qa.map(({ question, evidence = [] }) => {
    // One entry may name several turns: "D8:6; D9:17".
    const ids = evidence.flatMap((entry) => entry.split(/[\s;,]+/));
    return { text: question, evidence: [...new Set(ids.flatMap((id) => seqs.get(id) ?? []))] };
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
