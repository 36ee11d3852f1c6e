/**
 * Providers name the limit when they refuse a request as too long. The texts are nobody's contract, so each pattern
 * wants the words around the number; a text that is not understood teaches nothing.
 */
export interface Limit {
  window: number;
  /** What the request came to; null where that is not named. */
  asked: number | null;
}

/** What a window can be, in tokens: anything else was some other number. */
const WINDOW_RANGE = { from: 1_024, to: 20_000_000 };
/** Some errors hold a copy of the request. */
const READ_CHARACTERS = 4_000;

/** 200000, 200,000, 200.000, 200_000, 200 000 and 128k. */
const N = String.raw`(\d{1,3}(?:[,._'\u00a0\u202f ]\d{3}){1,4}(?![\d])|\d{1,12}(?:\.\d{1,12})?[kKmM]\b|\d{1,12})`;

/** Limits of another kind: of a minute, of a plan, of the answer alone. */
const NOT_OF_THE_WINDOW =
  /\b(?:tokens|requests) per (?:second|min|minute|hour|day)\b|\bTPM\b|rate.?limit|too many requests|\bquota\b|maximum allowed number of output tokens/i;

/** The first that matches names the window. */
const WINDOW_PATTERNS = [
  // prompt is too long: 210000 tokens > 200000 maximum · 190000 + 16384 > 200000
  `${N} (?:tokens? )?> ${N} maximum`,
  `${N} \\+ ${N} > ${N}`,
  // too large for model with 131072 maximum context length
  `model with ${N} maximum context length`,
  // maximum context length is 8192 tokens · maximum prompt length is 131072 · max input tokens of 8192
  `max(?:imum)? (?:allowed )?(?:model )?(?:context|prompt|input|sequence)(?: (?:length|window|size|tokens))?(?: limit)?(?: is| of|:|=)? ?\\(?${N}`,
  // is longer than the model's context length (4096 tokens) · loaded with context length of only 32768
  `context (?:length|window|size|limit)(?: is| of|:)?(?: only)? ?\\(?${N}`,
  // maximum number of tokens allowed (1048576)
  `maximum number of (?:input )?tokens allowed(?: is| of|:)? ?\\(?${N}`,
  // n_ctx: 4096 · "n_ctx":4096
  `\\bn_ctx"?[:=] ?${N}`,
  // prompt token count of 140000 exceeds the limit of 128000
  `exceeds (?:the|a) (?:token )?limit of ${N}`,
  // exceeded model token limit: 262144
  `exceeded model token limit: ?${N}`,
  // but the model only supports up to 1048576
  `(?:model )?only supports up to ${N}(?! completion| output)`,
  // Range of input length should be [1, 30720]
  `input length should be \\[\\d+, ?${N}\\]`,
  // tokens in the prompt cannot exceed 4081
  `tokens in the prompt cannot exceed ${N}`,
  // `inputs` tokens + `max_new_tokens` must be <= 8193
  `max_new_tokens\`? must be <= ?${N}`,
].map((source) => new RegExp(source, 'i'));

const ASKED_PATTERNS = [
  `${N} tokens? > `,
  `${N} \\+ ${N} > `,
  `for a total of (?:at least )?${N} tokens`,
  `resulted in ${N} tokens`,
  `requested(?: a total of| about)? ${N} tokens`,
  `requested: ?${N}`,
  `(?:prompt|request|input) contains (?:at least )?${N} `,
  `token count (?:of |is )?\\(?${N}`,
  `input length \\(?${N}`,
  `input \\(${N} tokens\\)`,
  `request \\(${N} tokens\\)`,
  `(?:n_keep|n_prompt_tokens)"?[:=] ?${N}`,
  `to keep the first ${N} tokens`,
  `prompt is too long: ${N}`,
  `received ${N}`,
  // Given: 8000 `inputs` tokens and 512 `max_new_tokens`
  `given: ${N} \`?inputs\`? tokens and ${N}`,
].map((source) => new RegExp(source, 'i'));

/** The window that an overflow error names; null if it names none. */
export function limitIn(message: string): Limit | null {
  const text = message.slice(0, READ_CHARACTERS);
  if (NOT_OF_THE_WINDOW.test(text)) return null;
  const window = numbersIn(text, WINDOW_PATTERNS)?.at(-1);
  if (window === undefined || window < WINDOW_RANGE.from || window > WINDOW_RANGE.to) return null;
  const asked = numbersIn(text, ASKED_PATTERNS)?.reduce((sum, each) => sum + each, 0);
  return { window, asked: asked !== undefined && asked > window ? asked : null };
}

function numbersIn(text: string, patterns: readonly RegExp[]): number[] | null {
  for (const pattern of patterns) {
    const match = pattern.exec(text);
    if (match) return match.slice(1).map(numberOf);
  }
  return null;
}

function numberOf(written: string): number {
  const unit = { k: 1_000, m: 1_000_000 }[written.at(-1)?.toLowerCase() ?? ''];
  if (unit) return Math.round(Number(written.slice(0, -1)) * unit);
  return Number(written.replaceAll(/\D/g, ''));
}
