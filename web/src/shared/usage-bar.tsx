import type { PromptTokens } from '../../../src/events/index.ts';
import '../style/usage.css';

type Level = PromptTokens['level'];

/** How full a window is: `warning` above 80 per cent, `critical` above 95. The text tells this too, not only the colour. */
export function UsageBar({
  percent,
  level,
  isSmall = false,
}: {
  percent: number;
  level: Level;
  isSmall?: boolean;
}) {
  const label = `context ${Math.round(percent)}% full${level === 'normal' ? '' : `, ${level}`}`;
  return (
    <span
      class={`usage usage-${level} ${isSmall ? 'usage-small' : ''}`}
      role="img"
      aria-label={label}
      title={label}
    >
      <span class="usage-fill" style={{ width: `${Math.min(100, percent)}%` }} />
    </span>
  );
}
