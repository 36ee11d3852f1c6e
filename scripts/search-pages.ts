/** A heading with the text below it, as the search knows it. */
export interface Passage {
  /** Address of the heading, from the root of the site. */
  page: string;
  /** Title of the page. */
  title: string;
  heading: string;
  text: string;
}

/**
 * The passages that answer a question, best first. Rare words count more than common ones, and words of a title or heading more
 * than those of a text. The site has this function as text, so it uses nothing from outside of itself.
 */
export function searchPages(passages: readonly Passage[], query: string): Passage[] {
  const wordsOf = (text: string) =>
    [...text.toLowerCase().matchAll(/[\p{L}\p{N}_]+/gu)].map(([word]) =>
      word.replace(/(?:ing|ed|es|s)$/, ''),
    );
  const common = new Set(
    wordsOf(
      'how do i a an the my to of in on it is what which who when with and for that this be at by are does',
    ),
  );
  const asked = [...new Set(wordsOf(query))].filter((word) => word !== '' && !common.has(word));
  const counted = passages.map((passage) => {
    const counts = new Map<string, number>();
    const parts: [string, number][] = [
      [passage.title, 6],
      [passage.heading, 4],
      [passage.text, 1],
    ];
    for (const [text, weight] of parts)
      for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + weight);
    return { passage, counts, length: wordsOf(passage.text).length + 40 };
  });
  const rarity = new Map(
    asked.map((word) => [
      word,
      Math.log(1 + passages.length / (1 + counted.filter(({ counts }) => counts.has(word)).length)),
    ]),
  );
  return counted
    .map(({ passage, counts, length }) => {
      const score = asked.reduce((sum, word) => {
        const count = counts.get(word) ?? 0;
        return sum + ((rarity.get(word) ?? 0) * count) / (count + 2 + length / 150);
      }, 0);
      return { passage, score };
    })
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .map(({ passage }) => passage);
}
