import '../style/loaded.css';

/** Lines in place of content that is loading. They appear only if that takes a while. */
export function Skeleton() {
  return (
    <p class="detail-loading">
      <span class="unseen">Loading…</span>
      <i aria-hidden="true" />
      <i aria-hidden="true" />
      <i aria-hidden="true" />
    </p>
  );
}
