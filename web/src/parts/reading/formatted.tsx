import { type ComponentChildren, h } from 'preact';
import { type Formatted as Part, formatMarkdown } from '../../../../src/library/projection/markdown.ts';
import { memo } from '../../shared/memo.ts';

/** See `Markdown`. */
export const Formatted = memo(function Formatted({ text }: { text: string }) {
  const parts = formatMarkdown(text);
  if (parts === null) return <p class="words-plain">{text}</p>;
  return <div class="words-formatted">{drawn(parts)}</div>;
});

function drawn(parts: readonly Part[]): ComponentChildren[] {
  return parts.map((part) =>
    typeof part === 'string' ? part : h(part.tag, part.attributes, drawn(part.content)),
  );
}
