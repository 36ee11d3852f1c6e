import { modelTable } from '../../events/index.ts';

/** Compaction begins at this share of the available tokens. */
export const TRIGGER = 0.8;
/** From this share of the available tokens on, a prompt warns. */
export const WARNING = 0.65;
/** Bytes of the largest request that providers accept. */
export const MAX_REQUEST_BYTES = 32 * 1_024 * 1_024;

interface TokenBudget {
  window: number;
  reserved: number;
  /** Tokens available for everything that is sent, tools included. */
  available: number;
}

/** Divides a window. At least half of it is for the prompt, whatever length of answer is requested. */
export function budgetOf({
  window,
  maxOutputTokens,
}: {
  window: number;
  maxOutputTokens: number;
}): TokenBudget {
  const whole = Number.isFinite(window) && window >= 2 ? Math.floor(window) : DEFAULT_WINDOW;
  const asked = Number.isNaN(maxOutputTokens) ? 0 : Math.ceil(Math.max(0, maxOutputTokens));
  const reserved = Math.min(asked, Math.floor(whole / 2));
  return { window: whole, reserved, available: whole - reserved };
}

interface Usage {
  level: 'normal' | 'warning' | 'critical';
  /** Used percentage of the available tokens, rounded down so that 80 appears only when compaction is due. */
  percent: number;
}

export function usageLevel(tokens: number, available: number): Usage {
  const share = available > 0 ? Math.max(0, tokens) / available : Number.POSITIVE_INFINITY;
  const level = share >= TRIGGER ? 'critical' : share >= WARNING ? 'warning' : 'normal';
  return { level, percent: Number.isFinite(share) ? Math.floor(share * 100) : 100 };
}

/**
 * Limits of models by name, from the vendors' pages as of November 2026. A configured window takes precedence over this
 * table, and a limit named by an overflow error takes precedence over both.
 *
 * Unsure values are conservative, because a window that is too small costs an early compaction, and one that is too large
 * costs a refused request:
 *  - If a vendor limits the input more tightly than the whole, `window` is the limit of the input (GPT-5: 272,000 of 400,000,
 *    from 5.4 on 922,000 of 1,050,000).
 *  - Hosts serve open weights with any window up to the model's own. The values are those of most hosts.
 *  - A window that must be requested (`[1m]`, a beta header) counts only if the name requests it.
 */
interface ModelWindow {
  window: number;
  maxOutput: number;
}

export const DEFAULT_WINDOW = 128_000;

/** Name pattern, window, longest answer. The first match decides, so specific patterns come first. */
const MODELS: readonly (readonly [name: string, window: number, maxOutput: number])[] = [
  // OpenAI
  ['gpt-6', 922_000, 128_000],
  ['gpt-5[\\d.]*-chat', 128_000, 16_384],
  ['gpt-5[\\d.]*-codex-spark', 128_000, 32_000],
  ['gpt-5\\.[4-9]-(?:mini|nano)', 272_000, 128_000],
  ['gpt-5\\.[4-9]', 922_000, 128_000],
  ['gpt-5', 272_000, 128_000],
  ['chat-latest', 272_000, 32_768],
  ['gpt-4\\.1', 1_047_576, 32_768],
  ['gpt-4\\.5', 128_000, 16_384],
  ['(?:chat)?gpt-4o', 128_000, 16_384],
  ['gpt-4-(?:turbo|1106|0125|vision)', 128_000, 4_096],
  ['gpt-4-32k', 32_768, 4_096],
  ['gpt-4', 8_192, 4_096],
  ['gpt-3\\.5-turbo-instruct', 4_096, 4_096],
  ['gpt-3\\.5', 16_385, 4_096],
  ['gpt-oss', 128_000, 32_000],
  ['o1-mini', 128_000, 65_536],
  ['o1-preview', 128_000, 32_768],
  ['o[134]', 200_000, 100_000],
  ['codex-mini', 200_000, 100_000],
  // Anthropic: 1M by default from 4.6 on (Haiku: 5.5), otherwise only with `[1m]`
  ['claude-.{0,64}\\[1m\\]', 1_000_000, 64_000],
  ['claude-(?:opus|sonnet)-4[-.][6-9](?!\\d)', 1_000_000, 64_000],
  ['claude-(?:opus|sonnet)-[5-9](?!\\d)', 1_000_000, 128_000],
  ['claude-haiku-(?:5[-.][5-9]|[6-9])(?!\\d)', 1_000_000, 128_000],
  ['claude-(?:fable|mythos)', 1_000_000, 128_000],
  ['claude-opus-4[-.]5', 200_000, 64_000],
  ['claude-opus-4', 200_000, 32_000],
  ['claude-(?:sonnet|haiku)-4', 200_000, 64_000],
  ['claude-3[-.]7', 200_000, 64_000],
  ['claude-3[-.]5', 200_000, 8_192],
  ['claude-3', 200_000, 4_096],
  ['claude-2\\.1', 200_000, 4_096],
  ['claude-(?:2|instant)', 100_000, 4_096],
  ['claude-', 200_000, 8_192],
  // Google: separate limits for input and answer
  ['gemini-(?:2\\.5|[3-9])', 1_048_576, 65_536],
  ['gemini-1\\.5-pro', 2_097_152, 8_192],
  ['gemini-(?:1\\.5|2)', 1_048_576, 8_192],
  ['gemini-(?:1\\.0|pro)', 30_720, 2_048],
  ['gemini-', 1_048_576, 8_192],
  ['gemma-?3', 128_000, 8_192],
  ['gemma', 8_192, 8_192],
  // DeepSeek
  ['deepseek-v[4-9]', 1_000_000, 256_000],
  ['deepseek-(?:chat|reasoner|v3|r1)', 128_000, 8_192],
  ['deepseek', 64_000, 8_192],
  // Mistral
  ['mistral-medium-(?:3[-.]5|latest)', 256_000, 128_000],
  ['mistral-large-(?:3|2512|latest)', 256_000, 128_000],
  ['devstral-(?:2|medium-2|2512|latest)', 256_000, 128_000],
  ['ministral-3', 256_000, 128_000],
  ['magistral-(?:small|medium)-2506', 40_000, 40_000],
  ['(?:mistral-(?:large-2402|small-240[29])|codestral-2405)', 32_000, 32_000],
  ['(?:mistral-(?:large|medium|small|saba)|devstral|codestral|magistral|ministral|pixtral)', 128_000, 32_000],
  ['(?:open-)?mistral-nemo', 128_000, 32_000],
  ['(?:open-)?mixtral-8x22b', 64_000, 32_000],
  ['(?:open-)?(?:mistral|mixtral)', 32_000, 8_192],
  // Meta
  ['(?:meta-)?llama-?4', 128_000, 8_192],
  ['(?:meta-)?llama-?v?3[-.p][1-9](?!\\d)', 128_000, 8_192],
  ['(?:meta-)?llama-?v?3', 8_192, 4_096],
  ['(?:meta-)?llama-?v?2', 4_096, 4_096],
  ['codellama', 16_384, 4_096],
  // Qwen
  ['qwen-?3\\.[5-9]-(?:max|plus|flash)', 991_000, 64_000],
  ['qwen-?3[\\d.]*-coder-(?:plus|flash)', 991_000, 64_000],
  ['qwen-?3[\\d.]*-(?:max|coder|next)', 256_000, 64_000],
  ['qwen-?3-.{0,64}-25(?:07|09)', 256_000, 32_768],
  ['qwen-?3\\.[5-9]', 256_000, 64_000],
  ['qwen-?3', 40_960, 8_192],
  ['qwen-?2\\.5.{0,64}-1m', 1_000_000, 8_192],
  ['qwen-(?:plus|flash|turbo)', 128_000, 16_384],
  ['qwq', 128_000, 8_192],
  ['qwen', 32_768, 8_192],
];

/** Null for a model that is not in the table. */
export const windowOf: (model: string) => ModelWindow | null = modelTable(
  MODELS.map(([name, window, maxOutput]) => [name, { window, maxOutput }]),
);

/**
 * The limit that a provider names when it refuses a request as too long. The wording may change, so each pattern
 * requires the words around the number. A text that no pattern matches is ignored.
 */
interface Limit {
  window: number;
  /** Tokens of the refused request; null if the message does not name them. */
  asked: number | null;
}

/** Range of plausible windows, in tokens. A number outside it is not a window. */
const WINDOW_RANGE = { from: 1_024, to: 20_000_000 };
/** Characters read of an error, because some errors contain a copy of the request. */
const READ_CHARACTERS = 4_000;

/** A number in the forms 200000, 200,000, 200.000, 200_000, 200 000 and 128k. */
const N = String.raw`(\d{1,3}(?:[,._'\u00a0\u202f ]\d{3}){1,4}(?![\d])|\d{1,12}(?:\.\d{1,12})?[kKmM]\b|\d{1,12})`;

/** Messages about other limits: per minute, of a plan, or of the answer only. */
const NOT_OF_THE_WINDOW =
  /\b(?:tokens|requests) per (?:second|min|minute|hour|day)\b|\bTPM\b|rate.?limit|too many requests|\bquota\b|maximum allowed number of output tokens/i;

/** Group 1 of the first pattern that matches is the window. */
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

/** The window named by an overflow error; null if it names none. */
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
