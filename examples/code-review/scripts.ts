import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** What the agents say without a model. */
export const DIFF = readFileSync(path.join(import.meta.dirname, 'change.diff'), 'utf8');

const PLAN = ['security review', 'performance review', 'style review', 'follow up once', 'verdict'];
const ALL_DONE = { items: PLAN.map((text) => ({ text, status: 'done' })) };

/**
 * Id of the task from the second call of the lead's first turn. A model reads it in the result; a script has to know
 * it.
 */
const SECURITY_TASK = `d-${hash('sha256', 'review:lead:1/0.1', 'hex').slice(0, 12)}`;

function reviewBy(to: string) {
  return { name: 'delegate', args: { to, task: `Review this diff.\n\n${DIFF}` } };
}

const VERDICT = {
  verdict: 'request_changes',
  summary: 'The SQL injection must be fixed before merging; the query per order should be.',
  findings: [
    {
      area: 'security',
      line: "WHERE customer = '${customer}'",
      what: 'SQL injection by the name of a customer',
      fix: 'a placeholder, and a test with a quote in the name',
    },
    {
      area: 'performance',
      line: 'result.push(await this.load(row.id))',
      what: 'one query for each order, one after the other',
      fix: 'SELECT * in the first query',
    },
    { area: 'style', line: 'const Rows', what: 'a variable in upper case', fix: 'rows' },
  ],
};

export const lead = {
  rules: [
    {
      when: { step: 1, contains: 'A placeholder is enough' },
      calls: [{ name: 'todo', args: ALL_DONE }],
    },
    { when: { contains: '5 items, 0 to be done' }, reply: JSON.stringify(VERDICT) },
    {
      when: { step: 1, contains: '(result of' },
      reply: 'The injection is the worst of it.',
      calls: [
        {
          name: 'follow_up',
          args: { task: SECURITY_TASK, text: 'Is a placeholder enough, or must the name be checked too?' },
        },
      ],
    },
    {
      when: { step: 1 },
      reply: 'Three reviews at once.',
      calls: [
        { name: 'todo', args: { items: PLAN.map((text) => ({ text, status: 'pending' })) } },
        ...['security', 'performance', 'style'].map(reviewBy),
      ],
    },
    { reply: JSON.stringify({ ...VERDICT, summary: 'Could not ask everybody.' }) },
  ],
};

export const security = {
  rules: [
    {
      when: { contains: 'Is a placeholder enough' },
      reply:
        'A placeholder is enough: the driver never reads it as SQL. Add a test with a quote in the name.',
    },
    {
      reply: "SQL injection: `customer = '${customer}'` takes whatever the caller sends. Use a placeholder.",
    },
  ],
};

export const performance = {
  rules: [
    { reply: 'One query for each order, one after the other: 100 orders, 101 queries. Select them at once.' },
  ],
};

export const style = { rules: [{ reply: '`Rows` is a variable: `rows`. The loop could be a map.' }] };
