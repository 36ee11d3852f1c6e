import { type ComparedScore, compareScores } from './compare-scores.ts';
import type { RunScore, Scorecard } from './scorecard.ts';
import { summaryWords } from './scores-table.ts';

/**
 * JUnit's XML for the pages of a CI: a suite for each scenario, a case for each score. A score that failed in a run is an
 * error, one that is worse than the baseline a failure, one without a value is skipped. Without times, so that two replays are
 * the same bytes.
 */
export function scoresJunit(scores: Scorecard, before?: Scorecard): string {
  const compared = compareScores(before ?? scores, scores);
  const suites = scores.scenarios.map(({ scenario, runs }) => {
    const cases = compared
      .filter((row) => row.scenario === scenario && row.after !== null)
      .map((row) => caseOf(row, runs));
    const having = (element: string) => cases.filter((xml) => xml.includes(`<${element} `)).length;
    const counts = { tests: cases.length, failures: having('failure'), errors: having('error') };
    return element('testsuite', { name: scenario, ...counts, skipped: having('skipped') }, cases.join(''));
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', { name: 'scores' }, suites.join(''))}`;
}

function caseOf(row: ComparedScore, runs: Scorecard['scenarios'][number]['runs']): string {
  const { scenario, score, change, before, after } = row;
  const taken = runs.flatMap(({ seed, scores }) =>
    scores.filter((each) => each.score === score).map((each) => runWords(seed, each)),
  );
  const words = `${summaryWords(after)}, ${after?.n} runs\n${taken.join('\n')}`;
  const inner = [
    ...(after && after.failed > 0
      ? [element('error', { message: `failed in ${after.failed} runs`, type: 'error' })]
      : []),
    ...(change === 'worse' && after?.failed === 0
      ? [
          element('failure', {
            message: `worse: ${summaryWords(before)} before, now ${summaryWords(after)}`,
            type: 'worse',
          }),
        ]
      : []),
    ...(after?.n === 0 && after.failed === 0 ? [element('skipped', { message: 'no value' })] : []),
    element('system-out', {}, escaped(words)),
  ];
  return element('testcase', { classname: scenario, name: score }, inner.join(''));
}

function runWords(seed: number, taken: RunScore): string {
  const value = taken.kind === 'scored' ? String(taken.value) : taken.kind;
  return `run ${seed}: ${value}${taken.why === '' ? '' : ` - ${taken.why}`}`;
}

/** `inner` is XML already. */
function element(name: string, attributes: Record<string, string | number>, inner = ''): string {
  const list = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(String(value))}"`);
  return `<${name}${list.join('')}>${inner}</${name}>\n`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\n': '&#10;',
  '\t': '&#9;',
  '\r': '&#13;',
};

/** Own code, since it is all of XML that is needed. Characters that XML 1.0 cannot hold at all become U+FFFD. */
function escaped(text: string): string {
  return (
    text
      .toWellFormed()
      // oxlint-disable-next-line no-control-regex
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
      .replace(/[&<>"'\n\t\r]/g, (char) => ENTITIES[char] ?? char)
  );
}
