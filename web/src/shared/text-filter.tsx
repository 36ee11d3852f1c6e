import { go, route } from '../state/route.ts';

interface TextFilterProps {
  /** The parameter of the address that holds the text. */
  of: 'q' | 'find';
  label: string;
  placeholder: string;
  /** The field that the key `/` leads to. */
  isMain?: boolean;
  isOff?: boolean;
  class?: string;
}

/** A field for words that are searched for. They are in the address, and typing adds no steps to the browser's history. */
export function TextFilter({ of, label, placeholder, isMain = true, isOff, class: name }: TextFilterProps) {
  return (
    <input
      id={isMain ? 'search' : undefined}
      class={name}
      type="search"
      aria-label={label}
      placeholder={isMain ? `${placeholder}  /` : placeholder}
      value={route.value[of]}
      disabled={isOff}
      onInput={({ currentTarget: { value } }) => go({ [of]: value }, { replace: true })}
    />
  );
}

/** Whether a text has each of the words, in any order and case. */
export function hasWords(text: string, words: string): boolean {
  const low = text.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => low.includes(word));
}
