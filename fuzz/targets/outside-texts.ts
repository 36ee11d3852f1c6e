import { checkReply } from '../../src/actors/turn/check-reply.ts';
import { limitIn } from '../../src/context/budget/windows.ts';
import { conclusionOf, gist, sentencesOf } from '../../src/context/text/cut-text.ts';
import { errorLines, filesOf, findWords } from '../../src/context/extract/findings.ts';
import { constraintsOf } from '../../src/context/extract/demands.ts';
import { questionsOf } from '../../src/context/extract/facts.ts';
import { tasksOf } from '../../src/context/extract/task-lists.ts';
import { escapeFences, escapeMarks } from '../../src/context/text/marks.ts';
import { NOBODY, personLabel } from '../../src/context/text/people.ts';
import { wordsOf } from '../../src/context/text/words.ts';
import { parseHandoff } from '../../src/context/summary/requests.ts';
import { toolSyntaxShare, verifySummary } from '../../src/context/summary/verify-summary.ts';
import { parseTurnId } from '../../src/events/index.ts';
import { exceeded } from '../../src/http/read-json.ts';
import { conversationName } from '../../src/library/import/import-transcript.ts';
import { escapeHtml } from '../../src/library/projection/render-html.ts';
import { readReferences } from '../../packages/nostr/src/nostr-event.ts';
import { bestByCapability } from '../../src/library/routing/route.ts';
import { createRedact } from '../../src/providers/redact.ts';
import { redactSecrets } from '../../src/library/config/redact-secrets.ts';
import { hideSecrets } from '../../src/library/runtime/secrets.ts';
import { htmlText } from '../../src/tools/builtin/fetch.ts';
import { preview } from '../../src/tools/preview.ts';

const redact = redactSecrets();
const hideKeys = createRedact([]);
const hideInLines = hideSecrets([], []);
const lettersOf = (text: string) => text.length;

/** Functions that process external text with composed expressions, or with several together. */
export const OUTSIDE_TEXTS: Readonly<Record<string, (text: string) => unknown>> = {
  escapeFences,
  escapeMarks: (text) => escapeMarks(text, (name) => name === 'Uma'),
  personLabel: (name) => personLabel(NOBODY, { kind: 'user', id: name, name }, 0),
  constraintsOf: (text) => constraintsOf(text, false),
  errorLines: (text) => errorLines(text),
  filesOf: (text) => filesOf({ id: 'k', name: 'bash', args: JSON.stringify({ command: text }) }),
  patchedFilesOf: (text) => filesOf({ id: 'k', name: 'apply_patch', args: JSON.stringify({ patch: text }) }),
  tasksOf,
  questionsOf,
  findWords: (text) => findWords(text, true),
  findWordsInJson: (text) => findWords(JSON.stringify({ text }), false),
  sentencesOf,
  gist,
  conclusionOf,
  wordsOf,
  limitIn,
  parseHandoff,
  toolSyntaxShare,
  verifySummary: (text) =>
    verifySummary(text, { inputTokens: Infinity, maxTokens: text.length - 2, count: lettersOf }),
  parseTurnId,
  exceeded: (text) => exceeded(Buffer.from(text), { depth: 64, values: 1_000, bare: 10_000 }),
  conversationName: (text) => conversationName(text, 1),
  escapeHtml,
  redactSecrets: (text) => redact(text, { kind: 'message' } as Parameters<typeof redact>[1]),
  redactKeys: hideKeys,
  hideSecrets: hideInLines,
  htmlText,
  preview: (text) => preview(text),
  readReferences: (text) => readReferences(text, () => null),
  bestByCapability: (text) =>
    bestByCapability(text, [{ id: 'bo', description: text }] as unknown as Parameters<
      typeof bestByCapability
    >[1]),
  checkReply: (text) =>
    checkReply(
      { check: () => Promise.resolve({ data: null }) } as unknown as Parameters<typeof checkReply>[0],
      {
        kind: 'answered',
        answer: { text, calls: [], stop: 'end' } as unknown as Parameters<typeof checkReply>[1]['answer'],
      },
    ),
};
