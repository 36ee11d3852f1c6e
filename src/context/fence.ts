/**
 * Fences keep an author's text from imitating anything around it. The delimiter carries a key derived from the
 * conversation's secret, so no author can close a fence or open another; look-alikes are escaped all the same, so
 * that neither a model nor a reader is misled.
 */
export type FenceTag = 'msg' | 'missed' | 'handoff' | 'reminder';

const FENCE_LOOKALIKE = /<(?=\s*\/?\s*(?:msg|missed|handoff|reminder)-)/gi;
const HEADER_LOOKALIKE = /^([ \t]*)\[(?=@|system\]|[^\]\n]{1,80} -> @)/gim;

export function fence(tag: FenceTag, key: string, text: string): string {
  return `<${tag}-${key}>\n${text}\n</${tag}-${key}>`;
}

/** Text that cannot be taken for a fence. Lone surrogates become U+FFFD: providers refuse them. */
export function escapeFences(text: string): string {
  const clean = text.isWellFormed() ? text : text.toWellFormed();
  return clean.includes('<') ? clean.replace(FENCE_LOOKALIKE, '<\\') : clean;
}

/** Text that can be taken neither for a fence nor for a line of attribution; for what stands outside a fence. */
export function escapeHeaders(text: string, names: ReadonlySet<string>): string {
  const clean = escapeFences(text);
  if (!clean.includes('[')) return clean;
  const escaped = clean.replace(HEADER_LOOKALIKE, '$1\\[');
  if (names.size < 2) return escaped;
  return escaped.replace(/^([ \t]*)\[([^\]\n]{1,80})\]/gm, (all, space: string, name: string) =>
    names.has(name) ? `${space}\\[${name}]` : all,
  );
}
