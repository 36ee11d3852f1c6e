import type { ChatBody } from './recorder.ts';

/**
 * What a real server's prompt cache spares: the same requests once as Troupe sends them, and once with the facts that change
 * from turn to turn in front, as many frameworks write them into the system message. The server counts, in its `timings`.
 */
export const CACHE_LAYOUTS = ['append-only', 'live block in front'] as const;
export type CacheLayout = (typeof CACHE_LAYOUTS)[number];

export interface CacheFigures {
  layout: CacheLayout;
  requests: number;
  promptTokens: number;
  /** Prompt tokens that the server computed. The others were in its cache. */
  evaluated: number;
  /** The same share of each request, from 0 to 1. */
  shares: readonly number[];
  ms: number;
}

interface Timings {
  /** Prompt tokens taken from the cache. */
  cache_n: number;
  /** Prompt tokens computed. */
  prompt_n: number;
  prompt_ms: number;
}

/** Sends the requests one after the other and lets the server write one token for each. Its cache must be empty. */
export async function measurePromptCache(
  url: string,
  layout: CacheLayout,
  requests: readonly ChatBody[],
): Promise<CacheFigures> {
  const shares: number[] = [];
  const sum = { promptTokens: 0, evaluated: 0, ms: 0 };
  for (const [index, request] of requests.entries()) {
    const messages = layout === 'append-only' ? request.messages : withLiveInFront(request.messages, index);
    const answer = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages, max_tokens: 1 }),
    });
    if (!answer.ok) throw new Error(`the server refused a request: ${await answer.text()}`);
    const { timings } = (await answer.json()) as { timings: Timings };
    const total = timings.cache_n + timings.prompt_n;
    sum.promptTokens += total;
    sum.evaluated += timings.prompt_n;
    sum.ms += timings.prompt_ms;
    shares.push(timings.prompt_n / total);
  }
  return { layout, requests: requests.length, shares, ...sum };
}

const LIVE_BLOCK = /\n*\[reminder #(\d{6})\]\n[^]*?\n#\1/g;

/** The same facts, whole and in force, in front of everything. A minute passes from turn to turn. */
function withLiveInFront(messages: ChatBody['messages'], minute: number): ChatBody['messages'] {
  const time = new Date(minute * 60_000).toISOString().slice(11, 16);
  const live = `time: 2026-11-27 ${time}\ntask: answer the last message\nperson: Ana\n\n`;
  return messages.map(({ role, content }, index) => ({
    role,
    content: index === 0 ? live + content : content.replace(LIVE_BLOCK, ''),
  }));
}

export function describeCache([appended, fronted]: readonly [CacheFigures, CacheFigures]): string {
  const ratio = fronted.evaluated / appended.evaluated;
  return [
    `prompt cache of the server, ${appended.requests} requests`,
    ...[appended, fronted].map(
      ({ layout, promptTokens, evaluated, shares, ms }) =>
        `  ${layout.padEnd(20)} evaluated ${evaluated} of ${promptTokens} prompt tokens (${percent(evaluated / promptTokens)}), per turn a median of ${percent(median(shares))}, in ${(ms / 1_000).toFixed(1)} s`,
    ),
    `  the second layout evaluates ${ratio.toFixed(1)} times as many`,
  ].join('\n');
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
