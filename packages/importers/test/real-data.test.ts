import { createReadStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { EventDraft } from '../../../src/events/index.ts';
import { importTranscript, newImportReport } from '../../../src/library/import/index.ts';
import type { ImportItem } from '../../../src/library/import/index.ts';
import { AGENT, countOf, DATA, HAS_DATA, keyValueOf, textIn } from '../../../test/import/collect.ts';
import type { Imported } from '../../../test/import/collect.ts';

async function load(file: string): Promise<Imported> {
  const report = newImportReport();
  const chunks: AsyncIterable<Uint8Array> = createReadStream(join(DATA, file), { highWaterMark: 64 * 1024 });
  const items: ImportItem[] = [];
  for await (const item of importTranscript(chunks, { agent: AGENT, fileName: file }, report))
    items.push(item);
  const drafts = items.flatMap((item) => item.draft ?? []);
  for (const draft of drafts) expect(EventDraft.parse(draft)).toEqual(draft);
  expect(new Set(drafts.map((draft) => draft.id)).size).toBe(drafts.length);
  return { items, drafts, report };
}

function kinds({ drafts }: Imported): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const draft of drafts) {
    const key = draft.kind === 'message' ? `message by ${draft.author.kind}` : draft.kind;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

function callIds({ drafts }: Imported): string[] {
  return drafts.flatMap((draft) => (draft.kind === 'step' ? draft.body.calls.map((call) => call.id) : []));
}

function lines(file: string): unknown[] {
  const text = readFileSync(join(DATA, file), 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);
}

/** Multiset equality: each source text once among the drafts, and nothing else among them. */
function expectSameTexts(imported: Imported, texts: string[]): void {
  const said = imported.drafts.map(textIn).filter((text) => text !== '');
  expect(said.sort()).toEqual(texts.filter((text) => text.trim() !== '').sort());
}

type Chat = { role: string; content: string | null; tool_calls?: { id: string }[] };
type Part = { type: string; text?: string };

if (!HAS_DATA) test.skip('skipped: no ../shared/data', () => undefined);

describe.runIf(HAS_DATA)('real transcripts', () => {
  test('the pi session: 88 user and 453 assistant messages, 391 calls, 373 results, 18 without, 22 failed', async () => {
    const imported = await load('pi-large-session.jsonl');
    expect(kinds(imported)).toEqual({
      'message by user': 88,
      'message by agent': 65,
      step: 369,
      'tool.result': 373,
      'turn.aborted': 21,
      'turn.failed': 1,
    });
    // Three of the 22 failed turns had called tools, so they are a step and an ending.
    expect(65 + 369 + 22 - 3).toBe(453);
    expect(callIds(imported)).toHaveLength(391);
    expect(keyValueOf(imported.report.repaired)).toEqual({
      call_arguments: 3,
      missing_result: 18,
      reasoning_dropped: 1,
    });
    expect(keyValueOf(imported.report.skipped)).toEqual({ metadata: 105 });
    expect(imported.report).toMatchObject({ format: 'pi', lines: 1019, conversations: ['pi-large-session'] });
    const source = lines('pi-large-session.jsonl') as { message?: { content: Part[] } }[];
    const texts = source.flatMap(({ message }) =>
      message ? [message.content.flatMap((part) => part.text ?? []).join('\n')] : [],
    );
    expectSameTexts(imported, texts);
  });

  test('the airline trajectories: 60 conversations, every call id once, every text once', async () => {
    const imported = await load('tau/gpt-4o-airline-60.json');
    const { report } = imported;
    expect(report.conversations).toHaveLength(60);
    expect(report.conversations.at(-1)).toBe('gpt-4o-airline-60-60');
    expect(kinds(imported)).toEqual({
      'message by system': 60,
      'message by user': 489,
      'message by agent': 429,
      step: 361,
      'tool.result': 361,
    });
    expect(keyValueOf(report.repaired)).toEqual({ duplicate_call: 26 });
    for (const conversation of report.conversations) {
      const own = imported.items
        .filter((item) => item.conversation === conversation)
        .flatMap((item) => item.draft ?? []);
      const calls = callIds({ ...imported, drafts: own });
      const results = own.flatMap((draft) => (draft.kind === 'tool.result' ? [draft.body.call] : []));
      expect(new Set(calls).size).toBe(calls.length);
      expect(results).toEqual(calls);
    }
    const source = JSON.parse(readFileSync(join(DATA, 'tau/gpt-4o-airline-60.json'), 'utf8')) as {
      traj: Chat[];
    }[];
    expectSameTexts(
      imported,
      source.flatMap(({ traj }) => traj.map((message) => message.content ?? '')),
    );
  });

  test.each([
    ['tau/tau-airline-few_shot.jsonl', 19, 105],
    ['tau/tau-retail-few_shot.jsonl', 69, 479],
  ])('the dialogues of %s: %i conversations, %i tool texts, not a word lost', async (file, count, tools) => {
    const imported = await load(file);
    expect(imported.report).toMatchObject({ format: 'dialogue' });
    expect(imported.report.conversations).toHaveLength(count);
    expect(kinds(imported)).toMatchObject({ 'tool.result': tools });
    expect(callIds(imported)).toHaveLength(tools);
    const source = lines(file) as { messages_display: string }[];
    const texts = source.flatMap(({ messages_display: display }) =>
      display.split(/(?:^|\n)(?:user|assistant|tool|system):(?: |(?=\n|$))/).slice(1),
    );
    expectSameTexts(
      imported,
      texts.filter((text) => text !== 'None'),
    );
  });

  test('the damaged Claude Code session: readable lines are kept, the others are reported by number', async () => {
    const imported = await load('claude-code/edge_cases.jsonl');
    const { repaired, skipped } = imported.report;
    expect(kinds(imported)).toEqual({
      'message by user': 7,
      'message by agent': 1,
      step: 3,
      'tool.result': 1,
    });
    expect(keyValueOf(repaired)).toEqual({ plain_text_part: 1, missing_result: 2 });
    expect(keyValueOf(skipped)).toEqual({ unknown_line: 6, metadata: 1 });
    const examples = skipped.flatMap((note) => note.examples.map((example) => example.split(':')[0]));
    expect(new Set(examples)).toEqual(new Set([10, 11, 13, 14, 15, 19].map((line) => `line ${line}`)));
    expect(countOf(skipped, 'not_json')).toBe(0);
  });

  test.each([
    [
      'claude-code/representative_messages.jsonl',
      { 'message by user': 4, 'message by agent': 3, step: 2, 'tool.result': 2 },
    ],
    ['claude-code/session_b.jsonl', { 'message by user': 2, 'message by agent': 1 }],
    [
      'claude-code/todowrite_examples.jsonl',
      { 'message by user': 2, 'message by agent': 3, step: 3, 'tool.result': 3 },
    ],
  ])('the session %s is whole', async (file, expected) => {
    const imported = await load(file);
    expect(kinds(imported)).toEqual(expected);
    expect(imported.report).toMatchObject({ format: 'claude-code', repaired: [] });
  });

  test.each([
    ['locomo/26.json', 419, ['Caroline', 'Melanie']],
    ['locomo/30.json', 369, ['Gina', 'Jon']],
    ['locomo/41.json', 663, ['John', 'Maria']],
  ])('the two people of %s: %i turns', async (file, turns, people) => {
    const imported = await load(file);
    expect(kinds(imported)).toEqual({ 'message by user': turns });
    expect([...new Set(imported.drafts.map((draft) => draft.author.name))].sort()).toEqual(people);
    expect(imported.items.every((item) => item.at !== null)).toBe(true);
    expect(imported.report.skipped).toEqual([]);
  });
});
