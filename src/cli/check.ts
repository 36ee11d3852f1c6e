/** One finding of `troupe doctor`. */
export interface Check {
  name: string;
  status: 'ok' | 'warning' | 'failed';
  detail: string;
}
