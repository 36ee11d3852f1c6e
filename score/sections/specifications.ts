import { specified } from '../../test/support/specified.ts';
import { atMost, figure, type Scored } from '../figure.ts';

/** The table of docs/contributing/specifications.md, counted. Its tests are run by `npm test`. */
export async function scoreSpecifications(): Promise<Scored> {
  const rows = specified();
  const count = (state: string) => rows.filter((row) => row.state === state).length;
  const [there, otherwise] = [count('there'), count('otherwise')];
  return {
    figures: [
      figure('behaviours specified', rows.length, 'count'),
      figure('  there, with a test', there, 'count'),
      figure('  otherwise, with a reason and a test', otherwise, 'count'),
      figure('  neither', rows.length - there - otherwise, 'count', atMost(0)),
    ],
    violations: [],
  };
}
