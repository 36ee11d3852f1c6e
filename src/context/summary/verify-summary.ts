import { cutAtBoundary } from '../text/cut-text.ts';

type SummaryVerdict = { kind: 'ok'; text: string; cut: boolean } | { kind: 'rejected'; why: SummaryFlaw };

type SummaryFlaw =
  | 'empty'
  | 'tool_syntax'
  | 'refusal'
  | 'repetitive'
  | 'too_short'
  | 'too_long'
  | 'larger_than_input';

interface SummaryBounds {
  inputTokens: number;
  maxTokens: number;
  count: (text: string) => number;
}

/** A summary of up to this many times its room is cut. A longer one is rejected, because the model wrote something else. */
const MAX_OVERRUN = 2;
/**
 * If the input has more tokens than the first limit, an answer with fewer than the second is rejected. It is no summary but
 * "Done." or "Here is the summary:".
 */
const LONG_INPUT_TOKENS = 2_000;
const MIN_TOKENS = 16;
/** Maximum characters of an answer, including thoughts. Longer answers are rejected. */
const MAX_WRITTEN_CHARS = 512 * 1_024;
/** Maximum share of tool calls in a summary. Prose may quote a call, but an answer of mostly calls is not prose. */
const MAX_TOOL_SHARE = 0.5;

/** Unwraps a model's summary and checks whether it can replace the conversation. */
export function verifySummary(
  written: string,
  { inputTokens, maxTokens, count }: SummaryBounds,
): SummaryVerdict {
  if (written.length > MAX_WRITTEN_CHARS) return { kind: 'rejected', why: 'too_long' };
  const text = unwrap(written.toWellFormed());
  if (!/[\p{L}\p{N}]/u.test(text)) return { kind: 'rejected', why: 'empty' };
  if (toolSyntaxShare(text) > MAX_TOOL_SHARE) return { kind: 'rejected', why: 'tool_syntax' };
  if (isRefusal(text)) return { kind: 'rejected', why: 'refusal' };
  const tokens = count(text);
  if (tokens >= inputTokens) return { kind: 'rejected', why: 'larger_than_input' };
  if (inputTokens > LONG_INPUT_TOKENS && tokens < MIN_TOKENS) return { kind: 'rejected', why: 'too_short' };
  if (tokens > maxTokens * MAX_OVERRUN) return { kind: 'rejected', why: 'too_long' };
  if (isRepetitive(text)) return { kind: 'rejected', why: 'repetitive' };
  if (tokens <= maxTokens) return { kind: 'ok', text, cut: false };
  const shorter = cutAtBoundary(text, maxTokens, count);
  return shorter === null ? { kind: 'rejected', why: 'too_long' } : { kind: 'ok', text: shorter, cut: true };
}

/** Maximum nested wrappers that are removed. No model wraps a text this often. */
const MAX_LAYERS = 4;
/** Thoughts at the start, with or without a closing tag. */
const LEADING_THOUGHTS =
  /^(?:\s*<(think|thinking|thought|reasoning|analysis|scratchpad)>(?:[^]*?<\/\1>|[^]*$))+/i;
/** The end of thoughts whose opening tag the model's template removed. */
const THOUGHT_END = /^[ \t]*<\/think(?:ing)?>[ \t]*$/im;
const SUMMARY_TAG = /^<(summary(?:-\w+)?)>([^]*)<\/\1>$/i;
const FENCE_LINE = /^(`{3,})(markdown|md|text|txt|plaintext)?\s*$/i;

/** Removes thoughts, an outer code fence and an outer summary tag, in any order of nesting. */
function unwrap(written: string): string {
  let text = written.trim();
  for (let layer = 0; layer < MAX_LAYERS; layer += 1) {
    text = withoutThoughts(text).trim().replace(SUMMARY_TAG, '$2').trim();
    text = withoutFence(text).trim();
  }
  return text;
}

function withoutThoughts(text: string): string {
  const rest = text.replace(LEADING_THOUGHTS, '');
  const end = THOUGHT_END.exec(rest);
  if (!end || /<think/i.test(rest.slice(0, end.index))) return rest;
  return rest.slice(end.index + end[0].length);
}

/** The text without an outer fence. Two code blocks with prose between them must not be taken for one fence around everything. */
function withoutFence(text: string): string {
  const lines = text.split('\n');
  const [, ticks, language] = FENCE_LINE.exec(lines[0] ?? '') ?? [];
  if (ticks === undefined || lines.length < 3 || lines.at(-1)?.trim() !== ticks) return text;
  const inner = lines.slice(1, -1);
  const isNested = inner.some((line) => line.trimStart().startsWith(ticks));
  return isNested && language === undefined ? text : inner.join('\n');
}

const MAX_REFUSAL_CHARS = 400;
const REFUSALS: readonly RegExp[] = [
  /^(?:i['’]m |i am )?(?:very |so )?sorry\b/i,
  /^i apologi[sz]e\b/i,
  /^i (?:can['’]?t|cannot|can not|won['’]?t|am unable|am not able)\b/i,
  /^i['’]m (?:unable|not able)\b/i,
  /^as an ai\b/i,
  /^(?:es )?tut mir leid\b|^ich kann (?:dabei|das|diese|hier|ihnen|dir)\b/i,
  /^(?:je suis )?désolée?\b|^je ne (?:peux|suis) pas\b/i,
  /^lo siento\b|^no puedo\b/i,
];

/** Whether the answer is a refusal: short, and beginning in the first person. A summary may report that others refused. */
function isRefusal(text: string): boolean {
  return text.length <= MAX_REFUSAL_CHARS && REFUSALS.some((pattern) => pattern.test(text));
}

/** Characters of a window, about a sentence. Ordinary prose does not repeat so long a text. */
const WINDOW_CHARS = 40;
/** Minimum characters of a text that is checked. In shorter texts a loop cannot be distinguished from a refrain. */
const LEAST_CHARS = 240;
const MAX_SHARE = 0.35;

/**
 * Whether a model ran in a loop: over a third of its text occurs earlier in it. Small models sometimes repeat one sentence
 * until their room is used up. Each window of letters is examined once.
 */
function isRepetitive(text: string): boolean {
  const letters = text.toLowerCase().replace(/\s+/g, ' ').trim();
  const windows = letters.length - WINDOW_CHARS + 1;
  if (letters.length < LEAST_CHARS) return false;
  const seen = new Set<string>();
  for (let at = 0; at < windows; at += 1) seen.add(letters.slice(at, at + WINDOW_CHARS));
  return windows - seen.size > windows * MAX_SHARE;
}

/**
 * The share of a text that is tool calls written as text. A mark of a call counts only at the start of a line and before a
 * call, so prose about such marks does not count.
 */
export function toolSyntaxShare(text: string): number {
  const total = weigh(text);
  if (total === 0) return 0;
  // Computed once, because computing it per call would take quadratic time.
  const lower = text.toLowerCase();
  let calls = 0;
  let at = 0;
  while (at < text.length) {
    const end = callEnd(text, lower, at);
    if (end === null) {
      const newline = text.indexOf('\n', at);
      at = newline < 0 ? text.length : newline + 1;
    } else {
      calls += weigh(text.slice(at, end));
      at = end;
    }
  }
  return calls / total;
}

function weigh(text: string): number {
  return text.replace(/\s+/g, '').length;
}

/** What must follow a mark: JSON, another tag, or a function name before one of them. */
const CALL_FOLLOWS = String.raw`(?=\s*(?:[{[<]|[\w.:-]{1,64}\s*[{[(<]|$))`;

/** Marks of calls, at the start of a line. Group 1 names the closing tag; without it the call extends to the end of the text. */
const MARKS: readonly RegExp[] = [
  `<((?:[a-z]{1,10}:)?(?:tool_?calls?|function_?calls?|tool_use|tool_code|invoke))(?:\\s[^>\\n]*)?>${CALL_FOLLOWS}`,
  `<(function)=[\\w.:-]{1,64}>`,
  String.raw`(?:<[|｜])(?:tool|python_tag|channel|start|message)[^|｜\n]{0,40}[|｜]>(?=\s*(?:[{[<]|[\w.:-]{1,64}\s*[{[(<]|import\s|from\s|(?:commentary|assistant)\b|$))`,
  String.raw`\[(?:TOOL_CALLS?|TOOL_REQUEST)\]${CALL_FOLLOWS}`,
].map((mark) => new RegExp(`[ \\t]*${mark}`, 'iy'));

const CODE = /[ \t]*```(?:tool_?calls?|tool_code|function_?calls?)[ \t]*\n/iy;
const JSON_START = /[ \t]*(?:```(?:json)?[ \t]*\n\s*)?(?=[{[])/iy;

/** Index after a call that begins at `start`, the start of a line; null if none begins there. */
function callEnd(text: string, lower: string, start: number): number | null {
  for (const mark of MARKS) {
    const match = matchAt(mark, text, start);
    if (match) return match[1] ? endOf(lower, start, `</${match[1].toLowerCase()}>`) : text.length;
  }
  const code = matchAt(CODE, text, start);
  if (code) return endOf(lower, start + code[0].length, '```');
  const json = matchAt(JSON_START, text, start);
  return json && jsonCallEnd(text, start + json[0].length);
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function endOf(lower: string, from: number, closing: string): number {
  const found = lower.indexOf(closing, from);
  return found < 0 ? lower.length : found + closing.length;
}

const NAME = String.raw`"(?:name|tool|tool_name|function|recipient_name|action)"\s*:\s*"[\w.:/-]+"`;
const ARGUMENTS = String.raw`"(?:arguments|parameters|input|args|tool_input|action_input)"\s*:`;
/** The start of a call in JSON, complete or cut off: a name and arguments, or an object that contains such. */
const JSON_CALL = new RegExp(
  String.raw`(?:\[\s*)?\{\s*(?:"(?:id|type)"\s*:\s*"[^"\n]*"\s*,\s*)*(?:${NAME}\s*,\s*${ARGUMENTS}|"tool_calls"\s*:\s*\[|"(?:function|function_call)"\s*:\s*\{|${ARGUMENTS}\s*(?:\{[^{}]*\}|"(?:[^"\\]|\\.)*")\s*,\s*${NAME})`,
  'y',
);

function jsonCallEnd(text: string, start: number): number | null {
  return matchAt(JSON_CALL, text, start) ? closingBracket(text, start) : null;
}

/** Index after the bracket that closes the one at `start`, or the end of the text. */
function closingBracket(text: string, start: number): number {
  let depth = 0;
  let inString = false;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (inString) {
      if (char === '\\') at += 1;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return text.length;
}
