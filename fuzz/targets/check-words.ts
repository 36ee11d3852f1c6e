import type { Author } from '../../src/events/index.ts';
import { Broken } from '../target.ts';
import type { Fact, Played } from './play-conversation.ts';

/** What holds for the words of authors under all rules. */
export const MARK = /w(\d+)[az]/g;

export function checkLabel(label: string, author: Author, labels: Map<string, string>): void {
  const isOfKind =
    author.kind === 'agent'
      ? /^@[A-Za-z0-9_.:-]{1,64}$/.test(label)
      : author.kind === 'system'
        ? label === 'system'
        : !/^\s*@|^(?:system|troupe|late result\b.*(?<! \(\S+\)))$|->|\p{C}/iu.test(label.normalize('NFKC'));
  if (!isOfKind) throw new Broken(`a ${author.kind} is called ${JSON.stringify(label)}`);
  if (/<|>|\|im_start\|>/.test(label)) throw new Broken(`a mark is in the label ${JSON.stringify(label)}`);
  const who = author.kind === 'system' ? 'system' : `${author.kind} ${author.id}`;
  const known = labels.get(label) ?? who;
  if (known !== who) throw new Broken(`${JSON.stringify(label)} is the label of ${known} and of ${who}`);
  labels.set(label, who);
}

export function checkWords(
  text: string,
  isOf: (fact: Fact) => boolean,
  facts: Played['facts'] = new Map(),
): void {
  for (const [, n] of text.matchAll(MARK)) {
    const fact = facts.get(Number(n));
    if (!fact || !isOf(fact)) throw new Broken(`words of event ${n} stand where they do not belong`);
  }
}

/** The text as it looks: invisible characters are removed, look-alikes are unified. */
export function seen(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/[\p{Cf}\p{DI}\p{M}]/gu, '')
    .replace(/[\u2039\u2329\u3008\u27e8\u02c2\u1438\u276e\u276c\u29fc]/g, '<')
    .replace(/[\u2010-\u2015\u2212\u02d7\u2043]/g, '-')
    .replace(/[\u3010\u3014\u27e6\u2045\u2772]/g, '[')
    .replace(/[\u3011\u3015\u27e7\u2046\u2773]/g, ']')
    .replace(/[ѕ]/g, 's')
    .replace(/у/g, 'y');
}

export function refuseFences(words: string): void {
  const found = /<[\s/]*(?:msg|missed|handoff|reminder|summary|transcript)-/i.exec(seen(words));
  if (found) throw new Broken(`words look like a fence: ${JSON.stringify(found[0])}`);
}

export function refuseHeaders(words: string): void {
  // The first line is on the line of the header, or of a mark of this test.
  const found =
    /(?:^|[\r\v\f\u0085\u2028\u2029])[^\S\n]*\[\s*(?!(?:image|file|text): )(?=[^\]\n]*\p{L}[^\]\n]*\p{L})[^\]\n"{}=;|]{1,600}\]/mu.exec(
      seen(words),
    );
  if (found) throw new Broken(`words look like a header: ${JSON.stringify(found[0])}`);
}
