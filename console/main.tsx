import { render } from 'preact';

const page = document.getElementById('page');
if (page !== null) {
  render(
    <main>
      <h1>Tollgate</h1>
    </main>,
    page,
  );
}
