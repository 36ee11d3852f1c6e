/**
 * What is known of models by name, as of November 2026, from the vendors' pages. A configured window comes before this
 * table, and what an overflow error says comes before both.
 *
 * Conservative where unsure, since a window that is too small costs an early compaction and one that is too large a
 * refused request:
 *  - Where a vendor limits the input more tightly than the whole, `window` is that limit (GPT-5: 272,000 of 400,000,
 *    from 5.4 on 922,000 of 1,050,000).
 *  - Open weights are served with any window up to their own; these are the ones that most hosts give.
 *  - A window that must be asked for (`[1m]`, a beta header) counts only if the name asks for it.
 */
export interface ModelWindow {
  window: number;
  maxOutput: number;
}

/** For a model that nothing is known of. */
export const DEFAULT_WINDOW = 128_000;

/** Name pattern, window, longest answer. The first that matches counts, so the specific comes first. */
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
  // Anthropic: 1M without asking from 4.6 on (Haiku: 5.5); before, or elsewhere, only `[1m]`
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
  // Google: limits of input and answer are apart
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

/** A name begins the id or follows a prefix: `openai/`, `us.anthropic.`, `ft:`, `@cf/`. */
const PATTERNS = MODELS.map(
  ([name, window, maxOutput]) => [new RegExp(`(?:^|[/.:@])(?:${name})`), { window, maxOutput }] as const,
);

/** Null for a model that is not in the table. */
export function windowOf(model: string): ModelWindow | null {
  const id = model.trim().toLowerCase();
  return PATTERNS.find(([pattern]) => pattern.test(id))?.[1] ?? null;
}
