import type { InspectedPrompt, PromptDiff } from '../../../../src/library/troupe.ts';
import { percent, short, tokens as inTokens, whole } from '../../shared/format.ts';
import { CacheBreak } from './cache-break.tsx';
import { placeOf, scaleOf, sizeOf, slicesOf } from './prompt-layout.ts';

interface ContextBarProps {
  prompt: InspectedPrompt;
  diff: PromptDiff | null;
}

/** Share of the window above which the bar is readable without enlargement. */
const WIDE = 0.6;
const LEVELS = { normal: '', warning: 'nearly full', critical: 'full' } as const;

/** The window as one bar, layer by layer. If the prompt fills little of it, a second bar shows the prompt enlarged. */
export function ContextBar({ prompt, diff }: ContextBarProps) {
  const { window, reserved, percent: used, level } = prompt.tokens;
  const { tokens, isReported } = sizeOf(prompt);
  const free = Math.max(0, window - reserved - tokens);
  const share = Math.min(1, tokens / window);
  const cache = cacheOf(prompt);
  const broke = diff?.broke ?? null;
  return (
    <section class="prompt-context" aria-label="Context window">
      <p class="prompt-size">
        <strong>{inTokens(tokens, { isEstimate: !isReported })}</strong> of {whole(window)} tokens
        <span class={`prompt-level prompt-level-${level}`}>
          {used}% {LEVELS[level]}
        </span>
        <span class="quiet">{isReported ? 'reported' : 'estimated'}</span>
        <span class="prompt-free">
          {short(Math.round(free))} free, {short(reserved)} for the answer
        </span>
      </p>
      <div class="prompt-bar prompt-bar-window" aria-hidden="true">
        <Slices prompt={prompt} of={window} />
        <span class="prompt-bar-free" style={{ flexGrow: free }} />
        <span
          class="prompt-bar-reserved"
          style={{ flexGrow: reserved }}
          title={`${whole(reserved)} kept for the answer`}
        />
      </div>
      {share < WIDE && (
        <>
          <svg class="prompt-glass" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            <path d={`M0 0H${share * 100}L100 10H0z`} />
          </svg>
          <div class="prompt-bar" aria-hidden="true">
            <Slices prompt={prompt} of={tokens} isNamed />
          </div>
        </>
      )}
      <div class="prompt-under" aria-hidden="true">
        <span
          style={{ width: `${Math.min(100, (cache.tokens / tokens) * 100 * (share < WIDE ? 1 : share))}%` }}
        />
        {broke && (
          <i style={{ left: `${(placeOf(prompt, broke) / (share < WIDE ? tokens : window)) * 100}%` }} />
        )}
      </div>
      <p class="prompt-cache">
        <span class="prompt-cache-mark" aria-hidden="true" />
        {cache.isReported ? (
          <>
            {whole(cache.tokens)} read from cache ({percent(cache.tokens, tokens)}), reported
          </>
        ) : 'verified' in prompt && prompt.verified === false ? (
          <>The part shared with the previous prompt is unknown: the log does not contain the sent prompt</>
        ) : (
          <>
            {inTokens(Math.round(cache.tokens), { isEstimate: true })} begin as the prompt before did (
            {percent(cache.tokens, tokens)}), estimated
          </>
        )}
      </p>
      {broke && <CacheBreak broke={broke} before={diff?.a.turn ?? null} />}
    </section>
  );
}

interface SlicesProps {
  prompt: InspectedPrompt;
  of: number;
  isNamed?: boolean;
}

/** Minimum share of a slice that shows its name. */
const NAMED = 0.11;

function Slices({ prompt, of, isNamed = false }: SlicesProps) {
  return slicesOf(prompt).map(({ name, tokens }) => (
    <span
      key={name}
      class={`prompt-slice layer-${name}`}
      style={{ flexGrow: tokens }}
      title={`${name}: ${inTokens(Math.round(tokens), { isEstimate: true })} tokens, ${percent(tokens, of)}`}
    >
      {isNamed && tokens / of > NAMED && name}
    </span>
  ));
}

/** The tokens that the vendor reported as read from its cache, else those that a warm cache would hold. */
function cacheOf(prompt: InspectedPrompt): { tokens: number; isReported: boolean } {
  const { usage, cached } = prompt;
  if (usage && usage.cacheRead + usage.cacheWrite > 0) return { tokens: usage.cacheRead, isReported: true };
  // Scaled like the layers, and capped at the total: the log of a running turn is incomplete.
  return { tokens: Math.min(cached.tokens * scaleOf(prompt), sizeOf(prompt).tokens), isReported: false };
}
